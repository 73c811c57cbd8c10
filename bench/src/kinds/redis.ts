/** BullMQ on Redis, without fsync and with one for each write, against the product on SQLite with its own. No goal; the reason why people leave SQL. */
import type { Ground } from "../ground.js";
import { contest, type Row } from "../row.js";
import { draining } from "./drain.js";
import { submitting } from "./submit.js";

export async function againstRedis(ground: Ground): Promise<Row[]> {
  const memory = { redisPort: (await ground.redis("memory")).port };
  const always = { redisPort: (await ground.redis("always")).port };
  const names = ["BullMQ, Redis without fsync", "BullMQ, appendfsync always"] as const;
  const { rounds, drainJobs } = ground.effort;
  const rows: Row[] = [];
  for (const [what, runner] of [
    ["single submits, 64 in flight", submitting],
    [`drain ${String(drainJobs)}, one process, results kept`, draining],
  ] as const)
    rows.push(
      ...(await contest(
        {
          what: `${what} (SQLite FULL)`,
          unit: "jobs/s",
          product: await runner(ground, "jobtable", "jobtable", ground.sqlite()),
          peers: [
            await runner(ground, names[0], "bullmq", memory),
            await runner(ground, names[1], "bullmq", always),
          ],
        },
        rounds,
      )),
    );
  return rows;
}
