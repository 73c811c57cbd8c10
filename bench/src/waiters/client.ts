/**
 * Many requests under way at once, in a process of its own: gets a list of URLs, tells when all are
 * sent, and then, when the last one is answered, what each answer was and when it came.
 */
import http from "node:http";
import { epochMs } from "../measure.js";

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** ms since the Unix epoch, at the end of the body. */
  readonly at: number;
}

export type FromClient = { readonly sent: true } | { readonly answers: readonly Answer[] };

/** So many connections are opened before the server must have taken them: a listener's backlog (511) is bounded, and what does not fit comes back after seconds. */
const BURST = 250;

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

function get(url: string): { sent: Promise<void>; answer: Promise<Answer> } {
  const request = http.get(url, { agent });
  const answer = new Promise<Answer>((resolve, reject) => {
    request.once("error", reject);
    request.once("response", (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.once("error", reject);
      response.once("end", () => {
        resolve({ status: response.statusCode ?? 0, body, at: epochMs() });
      });
    });
  });
  const sent = new Promise<void>((resolve) => request.once("finish", () => resolve()));
  return { sent, answer };
}

/** Connections are taken in their order: an answer to a new one (none is free here) means that those before it have been. */
function taken(url: string): Promise<Answer> {
  return get(new URL("/", url).href).answer;
}

function tell(message: FromClient): void {
  process.send?.(message);
}

process.on("message", (urls: readonly string[]) => {
  void waitFor(urls);
});
process.once("disconnect", () => process.exit(0));

async function waitFor(urls: readonly string[]): Promise<void> {
  const sent: Promise<void>[] = [];
  const answers: Promise<Answer>[] = [];
  for (const url of urls) {
    const request = get(url);
    sent.push(request.sent);
    answers.push(request.answer);
    if (answers.length % BURST === 0) await taken(url);
  }
  const all = Promise.all(answers);
  await Promise.all(sent);
  tell({ sent: true });
  tell({ answers: await all });
}
