/**
 * A proxy between a ledger and its server that behaves as badly as real ones: it refuses the settings
 * that a session begins with, passes no notifications on, cuts off answers, or swallows everything for good while the
 * connections stay open. It speaks just enough of the protocol
 * (https://www.postgresql.org/docs/current/protocol-message-formats.html) to do so.
 */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface ProxyFaults {
  /** Ends connections that bring settings along, as PgBouncer does. */
  readonly refusesSettings?: boolean;
  /** Drops what LISTEN would bring. */
  readonly dropsNotifications?: boolean;
  /** Messages of clients with this word are never answered. */
  readonly swallowsWord?: string;
  /** Ends new connections at once. */
  readonly refusesConnections?: boolean;
  /** A connection that runs this statement is cut as its answer comes: by then it has been committed. */
  readonly cutsAnswerTo?: string;
}

const NOTIFICATION = "A".charCodeAt(0);
const READY = "Z".charCodeAt(0);
const PARSE = "P".charCodeAt(0);
const BIND = "B".charCodeAt(0);
const QUERY = "Q".charCodeAt(0);
const TAG_BYTES = 1;
const LENGTH_BYTES = 4;

export class PostgresProxy {
  readonly #server = createServer((client) => {
    this.#accept(client);
  });
  readonly #target: URL;
  /** May be changed at any time. */
  faults: ProxyFaults;
  readonly #sockets = new Set<Socket>();
  /** How often clients have run each statement so far, by the name under which it was prepared, else by its text. */
  readonly ran = new Map<string, number>();
  /** How many notifications the server has sent so far. */
  notifications = 0;
  /** How many connections are being made, and statements are not answered yet. */
  underWay = 0;
  /** How many messages of clients had the word that is swallowed. */
  swallowedWords = 0;
  /** Names under which statements were prepared. */
  readonly preparedNames = new Set<string>();
  #swallowed: ReadonlySet<Socket> = new Set();

  private constructor(target: string, faults: ProxyFaults) {
    this.#target = new URL(target);
    this.faults = faults;
  }

  static async start(target: string, faults: ProxyFaults = {}): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target, faults);
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** From now on nothing comes through on connections that are open now; new ones work. */
  swallow(): void {
    this.#swallowed = new Set(this.#sockets);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    if (this.faults.refusesConnections === true) {
      client.destroy();
      return;
    }
    const server = connect(Number(this.#target.port), this.#target.hostname);
    // The server is ready once when the connection is made, and once after each statement.
    let unready = 1;
    let isDoomed = false;
    this.underWay += 1;
    const count = (more: number): void => {
      unready += more;
      this.underWay += more;
    };
    client.on("close", () => count(-unready));
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      // It writes message by message: each would wait for the one before to be acknowledged.
      socket.setNoDelay();
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    const fromClient = new Messages((message, first) => {
      if (first && this.faults.refusesSettings === true && message.includes("options\0"))
        client.end(refusal());
      else if (this.#isSwallowed(message)) this.swallowedWords += 1;
      else this.#pass(client, server, message);
      if (first) return;
      const [tag] = message;
      if (tag === PARSE) this.preparedNames.add(textIn(message));
      // What is bound is run: the portal's name comes first, which is empty, then the statement's.
      if (tag === BIND) {
        const { cutsAnswerTo } = this.faults;
        isDoomed ||= cutsAnswerTo !== undefined && message.includes(cutsAnswerTo);
        this.#runs(textIn(message, 1));
      }
      if (tag === QUERY) this.#runs(textIn(message));
      if (tag === BIND || tag === QUERY) count(1);
    }, true);
    const fromServer = new Messages((message) => {
      if (message[0] === READY) count(-1);
      if (message[0] === NOTIFICATION) this.notifications += 1;
      if (this.faults.dropsNotifications === true && message[0] === NOTIFICATION) return;
      if (isDoomed) {
        if (message[0] === READY) client.destroy();
        return;
      }
      this.#pass(server, client, message);
    }, false);
    client.on("data", (data) => fromClient.add(data));
    server.on("data", (data) => fromServer.add(data));
  }

  #runs(statement: string): void {
    this.ran.set(statement, (this.ran.get(statement) ?? 0) + 1);
  }

  #isSwallowed(message: Buffer): boolean {
    const { swallowsWord } = this.faults;
    return swallowsWord !== undefined && message.includes(swallowsWord);
  }

  #pass(from: Socket, to: Socket, message: Buffer): void {
    if (!this.#swallowed.has(from) && to.writable) to.write(message);
  }
}

/** Cuts a stream into messages. A client's first one has no tag. */
export class Messages {
  #rest = Buffer.alloc(0);
  #first: boolean;
  readonly #take: (message: Buffer, first: boolean) => void;

  constructor(take: (message: Buffer, first: boolean) => void, fromClient: boolean) {
    this.#take = take;
    this.#first = fromClient;
  }

  add(data: Buffer | string): void {
    this.#rest = Buffer.concat([this.#rest, Buffer.from(data)]);
    for (;;) {
      const lengthAt = this.#first ? 0 : TAG_BYTES;
      if (this.#rest.length < lengthAt + LENGTH_BYTES) return;
      const end = lengthAt + this.#rest.readUInt32BE(lengthAt);
      if (this.#rest.length < end) return;
      const message = this.#rest.subarray(0, end);
      const first = this.#first;
      this.#rest = this.#rest.subarray(end);
      this.#first = false;
      this.#take(message, first);
    }
  }
}

/** The text that a message begins with. @param after so many bytes. */
function textIn(message: Buffer, after = 0): string {
  const start = TAG_BYTES + LENGTH_BYTES + after;
  return message.subarray(start, message.indexOf(0, start)).toString();
}

/** As PgBouncer answers settings that it does not know. */
export function refusal(): Buffer {
  const fields = "SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
  const message = Buffer.alloc(TAG_BYTES + LENGTH_BYTES + fields.length);
  message.write("E");
  message.writeUInt32BE(LENGTH_BYTES + fields.length, TAG_BYTES);
  message.write(fields, TAG_BYTES + LENGTH_BYTES);
  return message;
}
