/** Has a server count primes (`npm start` makes one that can), and waits for what it says. */
import { hasEnded, JobtableClient } from "jobtable/client";

export async function countPrimes(server: string, upTo: number): Promise<number> {
  const client = new JobtableClient({ server, token: process.env["JOBTABLE_AUTH_TOKEN"] ?? null });

  // With a key it can be sent again where no answer came: one key makes one job.
  const answer = await client.submit({
    task: "primes",
    input: { up_to: upTo },
    idempotencyKey: `primes up to ${String(upTo)}`,
  });
  if (answer.kind === "refused") throw new Error(answer.message);

  let job = await client.get(answer.jobId);
  while (job !== null && !hasEnded(job)) job = await client.wait(answer.jobId, 30_000);

  const result = await client.result(answer.jobId);
  if (result.kind !== "done") throw new Error(job?.error ?? `no result: ${result.kind}`);
  const { data } = JSON.parse(result.envelopeJson) as { data: { primes: number } };
  return data.primes;
}
