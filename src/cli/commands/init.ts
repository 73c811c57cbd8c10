/** `jobtable init`: a first task to start from. It writes one file and never over another. */
import type { Command } from "commander";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EXIT, misuse, type ExitCode } from "../exit-code.js";
import { addPlainVerb, type PlainInvocation, type Runner } from "../verb.js";

const DEFAULT_FOLDER = "tasks";
const NAME = "hello";

const FILE = `/** Greets. A task is a file with one default export; this one is named after the file. */
import { setTimeout as sleep } from "node:timers/promises";
import { task } from "jobtable";

interface Input {
  readonly name?: string;
  /** How long to think first. */
  readonly seconds?: number;
}

export default task<Input, { greeting: string }>({
  description: "Greets someone, after some thought",
  timeout: "1m",
  async run({ name = "world", seconds = 0 }, { signal, progress }) {
    for (let second = 1; second <= seconds; second += 1) {
      progress({ second, of: seconds });
      // Ends at once when the job is cancelled.
      await sleep(1_000, undefined, { signal });
    }
    return { greeting: \`Hello, \${name}!\` };
  },
});
`;

export function addInit(program: Command, runner: Runner): void {
  addPlainVerb(program, runner, {
    usage: "init [folder]",
    summary: `Write a first task into a folder (default: ${DEFAULT_FOLDER})`,
    example: "jobtable init tasks",
    run,
  });
}

async function run({ args, json, terminal }: PlainInvocation): Promise<ExitCode> {
  const path = join(args[0] ?? DEFAULT_FOLDER, `${NAME}.ts`);
  await write(path);
  const commands = [
    `jobtable serve ${quoted(path)}`,
    `jobtable submit ${NAME} --input '{"name": "Ada", "seconds": 3}' --wait`,
  ];
  if (json) terminal.print(JSON.stringify({ file: path, commands }));
  else
    terminal.print(
      [
        `wrote ${path}`,
        "",
        "Serve it:",
        `  $ ${commands[0] ?? ""}`,
        "",
        "And in another shell, in this folder:",
        `  $ ${commands[1] ?? ""}`,
      ].join("\n"),
    );
  return EXIT.done;
}

async function write(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, FILE, { flag: "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw misuse(`${path}: it is there already, and stays as it is; name another folder`);
    throw misuse(`${path}: it can't be written (${message})`);
  }
}

/** For a shell, where it needs that. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
