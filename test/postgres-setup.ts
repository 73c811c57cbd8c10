/**
 * One PostgreSQL server for a run of the tests, when a file that needs it is among them: one with
 * `postgres` in its path, which finds the server's URL with `inject("postgresUrl")`.
 * JOBTABLE_TEST_POSTGRES_URL names another server to use instead.
 */
import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres-server.js";

declare module "vitest" {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

export default async function setup(
  project: TestProject,
): Promise<(() => Promise<void>) | undefined> {
  const { testFiles } = await project.globTestFiles(filters(project));
  if (!testFiles.some((file) => file.slice(project.config.root.length).includes("postgres")))
    return undefined;
  const given = process.env["JOBTABLE_TEST_POSTGRES_URL"];
  if (given !== undefined && given !== "") {
    project.provide("postgresUrl", given);
    return undefined;
  }
  const server = await startPostgres();
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}

/** What `vitest run` was asked for. */
function filters({ vitest }: TestProject): string[] {
  return (vitest as { readonly filenamePattern?: string[] }).filenamePattern ?? [];
}
