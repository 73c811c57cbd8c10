/** What `serve` says once it serves: where, what, and a line to paste that works. */
import { existsSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Config } from "../config/settings.js";
import { maskStore } from "../config/values.js";
import type { RegisteredTask } from "../task/registry.js";

export interface Announcement {
  readonly url: string;
  readonly config: Config;
  readonly tasks: readonly RegisteredTask[];
  readonly defaultTask: RegisteredTask | null;
  readonly worker: boolean;
}

export function announcementJson({
  url,
  config,
  tasks,
  defaultTask,
  worker,
}: Announcement): string {
  return JSON.stringify({
    url,
    tasks: tasks.map(({ name }) => name),
    default_task: defaultTask?.name ?? null,
    store: maskStore(config.store),
    worker,
  });
}

export function announcementText(announcement: Announcement): string {
  const { url, config, tasks, defaultTask, worker } = announcement;
  const names = tasks.map(({ name }) => (name === defaultTask?.name ? `${name} (default)` : name));
  return [
    `jobtable listening on ${url}`,
    `tasks: ${names.join(", ")}`,
    `store: ${maskStore(config.store)}${worker ? "" : " (no worker in this process)"}`,
    `try: ${exampleCall(announcement)}`,
  ].join("\n");
}

/**
 * A request to paste into a shell. A task may have an example of its input beside it: for
 * `tasks/ocr.ts` that is `requests/ocr.json`.
 */
function exampleCall({ url, config, tasks, defaultTask }: Announcement): string {
  const task = defaultTask ?? tasks[0];
  const file = task === undefined ? null : exampleFile(task);
  const path = config.asyncEnabled && defaultTask !== null ? "/jobs" : `/tasks/${task?.name ?? ""}`;
  return [
    `curl -s ${url}${path}`,
    ...(config.authToken === null ? [] : ['-H "authorization: Bearer $JOBTABLE_AUTH_TOKEN"']),
    "-H 'content-type: application/json'",
    file === null ? "-d '{}'" : `-d @${file}`,
  ].join(" ");
}

/** Relative to the current folder, which is where the line is pasted. */
function exampleFile({ name, file }: RegisteredTask): string | null {
  if (file === null) return null;
  const path = join(dirname(file), "..", "requests", `${name}.json`);
  return existsSync(path) ? relative(process.cwd(), path) : null;
}
