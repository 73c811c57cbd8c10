import { text } from "../sql/rows.js";
/**
 * Reading the queued jobs by the index that they are in: task, priority (larger first), due time, id.
 * A group is the jobs of one task and one priority. Going from group to group costs one step each,
 * so that what is not asked for (other tasks, later times) is passed over and never read.
 */
import { integer } from "./rows.js";
import type { Statements } from "./statements.js";

export interface Group {
  readonly task: string;
  readonly priority: number;
}

/** A queued job in its place: by due time, then id. */
export interface Place {
  readonly runAt: string;
  readonly jobId: string;
  readonly rowid: number;
}

/** The tasks of which jobs are queued. */
export function* waitingTasks(run: Statements): Iterable<string> {
  for (let row = run.nextTask.get(""); row !== undefined;) {
    const task = text(row[0]);
    yield task;
    row = run.nextTask.get(task);
  }
}

/** The highest priority below `below` that queued jobs of the task have, or null. */
export function nextPriority(run: Statements, task: string, below: number): number | null {
  const row = run.nextPriority.get(task, below);
  return row === undefined ? null : integer(row[0]);
}

export function* waitingGroups(run: Statements, tasks: Iterable<string>): Iterable<Group> {
  for (const task of tasks) {
    let priority = nextPriority(run, task, Infinity);
    while (priority !== null) {
      yield { task, priority };
      priority = nextPriority(run, task, priority);
    }
  }
}

/** Jobs of the group that are due at `now`, the first ones to claim first. */
export function due(run: Statements, group: Group, now: string, limit: number): Place[] {
  return run.due.all(group.task, group.priority, now, limit).map(toPlace);
}

/** Jobs of these tasks that became due before `cutoff`, the longest-waiting first. */
export function overdue(
  run: Statements,
  tasks: Iterable<string>,
  cutoff: string,
  limit: number,
): Place[] {
  const found: Place[] = [];
  for (const { task, priority } of waitingGroups(run, tasks))
    for (const row of run.overdue.all(task, priority, cutoff, limit)) found.push(toPlace(row));
  return found.sort(byPlace).slice(0, limit);
}

export function byPlace(a: Place, b: Place): number {
  if (a.runAt !== b.runAt) return a.runAt < b.runAt ? -1 : 1;
  return a.jobId < b.jobId ? -1 : 1;
}

function toPlace(row: readonly (string | number | null)[]): Place {
  return { runAt: text(row[0]), jobId: text(row[1]), rowid: integer(row[2]) };
}
