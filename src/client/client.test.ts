/** What goes wrong between a client and a server; src/cli/ledger-jobs.test.ts has what goes well. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { JobtableClient } from "./client.js";
import { ClientError } from "./transport.js";

const ID = "job_01J0000000000000000000000A";

async function refusal(ask: () => Promise<unknown>): Promise<ClientError> {
  try {
    await ask();
  } catch (error) {
    if (error instanceof ClientError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

function answering(status: number, body: string, headers: Record<string, string> = {}) {
  const asked: { url: string; init: RequestInit }[] = [];
  const client = new JobtableClient({
    server: "http://test:1/base",
    token: "secret",
    fetch: async (url, init) => {
      asked.push({ url, init });
      return new Response(body, { status, headers });
    },
  });
  return { client, asked };
}

async function listening(
  listener: RequestListener,
  { closed = false }: { readonly closed?: boolean } = {},
): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  if (closed) await close();
  else onTestFinished(close);
  return `http://127.0.0.1:${port}`;
}

test("a request goes below the server's path, with the token, and follows no redirect", async () => {
  const { client, asked } = answering(404, '{"error":"job not found: x"}');
  expect(await client.get("a/b")).toBeNull();
  expect(asked).toMatchObject([
    {
      url: "http://test:1/base/jobs/a%2Fb",
      init: { method: "GET", redirect: "manual", headers: { authorization: "Bearer secret" } },
    },
  ]);
});

test("a long poll asks for no more than proxies let pass", async () => {
  const { client, asked } = answering(200, `{"job_id":"${ID}","state":"running"}`);
  await client.wait(ID, 3_600_000);
  await client.wait(ID, 0.5);
  expect(asked.map(({ url }) => url.replace(/.*\?/, ""))).toEqual(["timeout=50000", "timeout=1"]);
});

test("an answer to a key that was used before says so", async () => {
  const { client } = answering(202, `{"job_id":"${ID}","state":"done"}`, {
    "idempotent-replayed": "true",
  });
  expect(await client.submit({ task: "t", input: {}, idempotencyKey: "k" })).toEqual({
    kind: "accepted",
    jobId: ID,
    repeated: true,
  });
});

test("a retry sends its key as a quoted string, and none that a header can't carry", async () => {
  const { client, asked } = answering(202, `{"job_id":"${ID}","state":"pending"}`);
  await client.retry(ID, { idempotencyKey: ' say "k" \\' });
  await client.retry(ID);
  expect(asked.map(({ init }) => new Headers(init.headers).get("idempotency-key"))).toEqual([
    '" say \\"k\\" \\\\"',
    null,
  ]);
  expect(await client.retry(ID, { idempotencyKey: "ü" })).toMatchObject({
    kind: "refused",
    status: 422,
    message: "invalid input: Idempotency-Key: must be ASCII",
  });
  expect(asked).toHaveLength(2);
});

describe("what can't be worked with is one line and a reason", () => {
  test.each([
    [401, '{"error":"unauthorized"}', "unauthorized", /asks for a token.*JOBTABLE_AUTH_TOKEN$/],
    [503, '{"error":"service not ready","detail":"x"}', "unavailable", /: service not ready: x$/],
    [500, '{"error":"internal server error"}', "unexpected", /internal server error \(500\)/],
    [404, '{"error":"not found"}', "unexpected", /GET \/jobs\/job_\w+ answered 404 \(not found\)$/],
    [200, "<html>", "unexpected", /its answer \(200\) is no JSON; is it a jobtable server\?$/],
    [200, "[]", "unexpected", /is no JSON/],
    [200, '{"id":1}', "unexpected", /answered 200 \(no reason given\)$/],
    [200, `{"job_id":"${ID}","state":"dancing"}`, "unexpected", /answered 200/],
    [200, '{"job_id":"job_\\u001b[2J","state":"done"}', "unexpected", /answered 200/],
    [301, "", "unexpected", /it redirects to https:\/\/elsewhere$/],
  ] as const)("%d %s: %s", async (status, body, reason, message) => {
    const { client } = answering(status, body, { location: "https://elsewhere" });
    const error = await refusal(() => client.get(ID));
    expect(error).toMatchObject({ reason });
    expect(error.message).toMatch(/^server http:\/\/test:1\/base: /);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain("secret");
  });

  test("a refusal that is none of this API's", async () => {
    const { client } = answering(418, "{}");
    expect(await refusal(() => client.submit({ task: "t", input: {} }))).toMatchObject({
      reason: "unexpected",
    });
    expect(await refusal(() => client.list({ limit: 1 }))).toMatchObject({ reason: "unexpected" });
    expect(await refusal(() => client.diagnose())).toMatchObject({ reason: "unexpected" });
  });

  test("nobody listens", async () => {
    const server = await listening((_, response) => response.end(), { closed: true });
    const error = await refusal(() => new JobtableClient({ server }).get(ID));
    expect(error.reason).toBe("unreachable");
    expect(error.message).toBe(`can't reach ${server}: nothing listens there`);
  });

  test("the connection breaks", async () => {
    const server = await listening((request) => request.socket.destroy());
    const error = await refusal(() => new JobtableClient({ server }).get(ID));
    expect(error.reason).toBe("unreachable");
    expect(error.message).toBe(`can't reach ${server}: it closed the connection`);
  });

  test("the answer does not come in time", async () => {
    const client = new JobtableClient({
      server: "http://test",
      fetch: async () => {
        throw new DOMException("The operation was aborted due to timeout", "TimeoutError");
      },
    });
    expect((await refusal(() => client.get(ID))).message).toBe(
      "can't reach http://test: it did not answer in time",
    );
  });
});
