/** What only a real connection shows: clients that leave, bytes that are not HTTP, and closing. */
import type { FastifyInstance } from "fastify";
import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { appOn, job, SETTINGS, WIRE_ID } from "../../test/http/scripted-engine.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import type { LeaveSignal } from "../engine/api.js";
import type { Job } from "../job/job.js";
import { turnEnd } from "../runtime/turn.js";

const opened: { app: FastifyInstance; sockets: Socket[] }[] = [];
afterEach(async () => {
  for (const { app, sockets } of opened.splice(0)) {
    for (const socket of sockets) socket.destroy();
    await app.close();
  }
});

async function listening(...given: Parameters<typeof appOn>) {
  const app = appOn(...given);
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const sockets: Socket[] = [];
  opened.push({ app, sockets });
  async function socketOf(): Promise<Socket> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  }
  return {
    app,
    base: `http://127.0.0.1:${String(port)}`,
    socket: socketOf,
    /** Sends bytes; answers all that came until the server closed the connection. */
    raw: async (bytes: string): Promise<string> => {
      const socket = await socketOf();
      socket.write(bytes);
      const answer = await text(socket);
      socket.end();
      return answer;
    },
  };
}

/** A promise and its resolver. */
function signal<Value = void>(): { promise: Promise<Value>; give: (value: Value) => void } {
  let give: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((resolve) => {
    give = resolve;
  });
  return { promise, give };
}

const aborted = async (wanted: LeaveSignal | undefined): Promise<void> => {
  if (wanted === undefined) throw new Error("no signal");
  await new Promise<void>((resolve) => {
    wanted.addEventListener("abort", resolve);
  });
};

describe("a client that leaves", () => {
  test.each([
    ["a wait", `GET /jobs/${WIRE_ID}/wait HTTP/1.1\r\nHost: x\r\n\r\n`],
    [
      "a run",
      "POST /tasks/ocr HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    ],
  ])("ends %s, and is counted", async (_, request) => {
    const begun = signal<LeaveSignal | undefined>();
    const over = signal();
    const server = await listening({
      wait: async (_id, options) => {
        begun.give(options.signal);
        await aborted(options.signal);
        over.give();
        return job();
      },
      run: async (asked) => {
        begun.give(asked.signal);
        await aborted(asked.signal);
        over.give();
        return { kind: "cancelled" };
      },
    });
    const socket = await server.socket();
    socket.write(request);
    const signalOfWork = await begun.promise;
    expect(signalOfWork?.aborted).toBe(false);
    socket.destroy();
    await over.promise;
    expect(await (await fetch(`${server.base}/metrics`)).text()).toMatch(
      /jobtable_http_requests_total\{.*status="499"\} 1/,
    );
  });

  test("in the middle of its body breaks nothing", async () => {
    const server = await listening({});
    const socket = await server.socket();
    socket.write(
      "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{",
    );
    socket.destroy();
    expect((await fetch(`${server.base}/healthz`)).status).toBe(200);
  });
});

describe("what is not HTTP, or not enough of it", () => {
  test.each([
    ["garbage", "garbage\r\n\r\n", 400, 400],
    ["a broken header", "GET / HTTP/1.1\r\nHost x\r\n\r\n", 400, 400],
    ["a version of its own", "GET / HTTP/9.9\r\nHost: x\r\n\r\n", 400, 400],
    [
      "both lengths",
      "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      400,
      400,
    ],
    ["an endless URL", `GET /${"x".repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 431],
    ["no host", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400, 400],
    ["a method nobody knows", "BREW /jobs HTTP/1.1\r\nHost: x\r\n\r\n", 400, 400],
    ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405, 62],
    [
      "an expectation",
      "POST /nope HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n",
      404,
      63,
    ],
  ])("%s", async (_, bytes, status, code) => {
    const { raw } = await listening({});
    const answer = await raw(bytes);
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${String(status)} `));
    expect(head).toMatch(/^content-type: application\/json; charset=utf-8$/im);
    expect(head).toMatch(/^cache-control: no-store$/im);
    expect(head).toMatch(/^x-request-id: made-id$/im);
    expect(head).toMatch(/^connection: close$/im);
    expect(JSON.parse(body)).toMatchObject({ req_id: "made-id", code, data: null });
  });
});

describe("a body beyond the limit", () => {
  const large = "a".repeat(SETTINGS.requestSizeLimitBytes * 300);

  test("is refused with an answer that the client gets to see", async () => {
    const { base } = await listening({});
    const headers = { "content-type": "application/json" };
    for (const body of [JSON.stringify(large), new Blob([JSON.stringify(large)]).stream()]) {
      const reply = await fetch(`${base}/jobs`, {
        method: "POST",
        headers,
        body,
        ...(typeof body === "string" ? {} : { duplex: "half" as const }),
      });
      expect(reply.status).toBe(413);
      expect(await reply.json()).toMatchObject({ error: "request entity too large", code: 61 });
    }
  });
});

describe("a body that goes on after the answer", () => {
  const head = "Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  const chunk = `800\r\n${"a".repeat(0x800)}\r\n`;

  test.each([
    ["beyond the limit", `POST /jobs HTTP/1.1\r\n${head}${chunk}`, "413"],
    ["of a path nobody knows", `POST /nope HTTP/1.1\r\n${head}${chunk}`, "404"],
    ["that nobody asked for", `GET /healthz HTTP/1.1\r\n${head}${chunk}`, "200"],
  ])("%s is read for a while, then the connection is cut", async (_, bytes, status) => {
    const clock = new VirtualClock();
    const { socket: connection } = await listening({}, {}, { clock });
    const socket = await connection();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    // A reset is as good an end as any.
    socket.on("error", () => undefined);
    socket.write(bytes);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    socket.write(chunk);
    await clock.advance(4_999);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(1);
    socket.end();
    await closed;
    expect(clock.pendingTimers).toBe(0);
  });

  test("and ends may be followed by the next request", async () => {
    const clock = new VirtualClock();
    const { socket: connection } = await listening({}, {}, { clock });
    const socket = await connection();
    const answers = text(socket);
    socket.write(`POST /jobs HTTP/1.1\r\n${head}${chunk}`);
    socket.write(`${chunk}0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(await answers).toMatch(/^HTTP\/1.1 413 [^]*HTTP\/1.1 200 /);
    socket.end();
    expect(clock.pendingTimers).toBe(0);
  });
});

test("a server that closes ends the connection of a body that it would not take, once that has come", async () => {
  const clock = new VirtualClock();
  const { app, socket: connection } = await listening({}, {}, { clock });
  const socket = await connection();
  const head = "Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  socket.write(`POST /nope HTTP/1.1\r\n${head}1\r\na\r\n`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 404 /);
  const ended = once(socket, "end");
  const closed = app.close();
  // Its hooks come first: then the server is closing.
  while (app.server.listening) await turnEnd();
  socket.write("0\r\n\r\n");
  await ended;
  socket.end();
  await closed;
  expect(clock.pendingTimers).toBe(0);
});

test("HEAD on a service path has no body", async () => {
  const { raw } = await listening({});
  const answer = await raw("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  expect(answer.endsWith("\r\n\r\n")).toBe(true);
});

describe("closing", () => {
  test("ends waits with what they know, and refuses newcomers on open connections", async () => {
    const begun = signal();
    const server = await listening({
      wait: async (_id, options): Promise<Job> => {
        begun.give();
        await aborted(options.signal);
        return job({ status: "running" });
      },
    });
    const socket = await server.socket();
    const answers = text(socket);
    socket.write(`GET /jobs/${WIRE_ID}/wait HTTP/1.1\r\nHost: x\r\n\r\n`);
    await begun.promise;
    // Pipelined behind the wait: it is only read once that was answered.
    socket.write("GET /jobs HTTP/1.1\r\nHost: x\r\n\r\n");
    await server.app.close();
    const [wait = "", newcomer = ""] = (await answers).split(/(?=HTTP\/1\.1)/);
    socket.end();
    expect(wait).toMatch(/^HTTP\/1.1 200 /);
    expect(wait).toContain('"state":"running"');
    if (newcomer !== "") {
      expect(newcomer).toMatch(/^HTTP\/1.1 503 /);
      expect(newcomer).toContain('{"error":"service not ready","code":65');
    }
  });
});
