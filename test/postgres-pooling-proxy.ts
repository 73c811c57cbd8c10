/**
 * A proxy that pools transactions, as PgBouncer does: two connections to the server, which all clients
 * share, and a client's next transaction is another one's than the last. What is set, prepared or
 * listened for in a session stays with its connection, whoever comes there next.
 */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { Messages, refusal } from "./postgres-proxy.js";

const TERMINATE = "X".charCodeAt(0);
const READY = "Z".charCodeAt(0);
/** In READY: no transaction is open. */
const IDLE = "I".charCodeAt(0);
const STATUS_AT = 5;
const SERVERS = 2;

interface Client {
  readonly socket: Socket;
  server: Server | null;
  /** What it has sent while it had no server. */
  readonly waiting: Buffer[];
}

interface Server {
  readonly socket: Socket;
  client: Client | null;
}

export class PostgresPoolingProxy {
  readonly #proxy = createServer((socket) => {
    this.#accept(socket);
  });
  readonly #target: URL;
  readonly #passesSettings: boolean;
  readonly #sockets = new Set<Socket>();
  /** What the server said to its first client: all others are told the same. */
  #greeting: Promise<Buffer> | null = null;
  readonly #free: Server[] = [];
  readonly #line: Client[] = [];

  private constructor(target: string, passesSettings: boolean) {
    this.#target = new URL(target);
    this.#passesSettings = passesSettings;
  }

  /** @param passesSettings whether it takes the settings that a session begins with, or refuses them. */
  static async start(target: string, passesSettings: boolean): Promise<PostgresPoolingProxy> {
    const made = new PostgresPoolingProxy(target, passesSettings);
    await new Promise<void>((resolve) => {
      made.#proxy.listen(0, "127.0.0.1", resolve);
    });
    return made;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#proxy.address() as AddressInfo).port);
    return url.href;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#proxy.close(resolve));
  }

  #accept(socket: Socket): void {
    const client: Client = { socket, server: null, waiting: [] };
    this.#keep(socket, () => {
      // Its transaction is rolled back with the connection.
      client.server?.socket.destroy();
    });
    const messages = new Messages((message, first) => {
      if (first) this.#greet(socket, message);
      else if (message[0] === TERMINATE) socket.end();
      else if (client.server !== null) client.server.socket.write(message);
      else {
        client.waiting.push(message);
        if (client.waiting.length === 1) this.#line.push(client);
        this.#match();
      }
    }, true);
    socket.on("data", (data) => messages.add(data));
  }

  #greet(socket: Socket, startup: Buffer): void {
    if (!this.#passesSettings && startup.includes("options\0")) {
      socket.end(refusal());
      return;
    }
    this.#greeting ??= Promise.all(
      Array.from({ length: SERVERS }, () => this.#connect(startup)),
    ).then(([first = Buffer.alloc(0)]) => first);
    void this.#greeting.then((greeting) => socket.write(greeting));
  }

  /** Resolves with what the server says until it is ready. */
  #connect(startup: Buffer): Promise<Buffer> {
    const socket = connect(Number(this.#target.port), this.#target.hostname);
    const server: Server = { socket, client: null };
    this.#keep(socket, () => server.client?.socket.destroy());
    socket.write(startup);
    return new Promise((resolve) => {
      const greeting: Buffer[] = [];
      let greeted = false;
      const messages = new Messages((message) => {
        if (greeted) server.client?.socket.write(message);
        else greeting.push(message);
        if (message[0] !== READY || message[STATUS_AT] !== IDLE) return;
        greeted = true;
        resolve(Buffer.concat(greeting));
        if (server.client !== null) server.client.server = null;
        server.client = null;
        this.#free.push(server);
        this.#match();
      }, false);
      socket.on("data", (data) => messages.add(data));
    });
  }

  /** Gives free connections, the longest free first, to those who wait. */
  #match(): void {
    while (this.#free.length > 0 && this.#line.length > 0) {
      const [server, client] = [this.#free.shift(), this.#line.shift()];
      if (server === undefined || client === undefined) return;
      server.client = client;
      client.server = server;
      for (const message of client.waiting.splice(0)) server.socket.write(message);
    }
  }

  #keep(socket: Socket, closed: () => void): void {
    this.#sockets.add(socket);
    socket.setNoDelay();
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#sockets.delete(socket);
      closed();
    });
  }
}
