/** What opening a schema as a ledger would change in it, without changing it. */
import type { Logger } from "../../runtime/logger.js";
import type { MigrationPlan } from "../migration-plan.js";
import { parseAddress } from "./address.js";
import { Connections } from "./connections.js";
import { migrations, plan } from "./migrate.js";

/** @throws LedgerError when the server can't be reached, or has the schema of a newer version. */
export async function plannedMigrations(url: string, logger: Logger): Promise<MigrationPlan> {
  const address = parseAddress(url);
  const plans: MigrationPlan[] = [];
  const connections = await Connections.open(address, logger, async (client) => {
    plans.push(await plan(client, address, migrations()));
  });
  await connections.close();
  const [planned] = plans;
  if (planned === undefined) throw new Error("a connection was opened without being asked");
  return planned;
}
