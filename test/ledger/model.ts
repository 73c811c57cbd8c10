/**
 * The contract as plainly as it can be written: one array, looked through from end to end each time.
 * It shares no code with any ledger, and none with src/job, so that a mistake there is one that the
 * comparison finds. Its time is its own: it starts at 0 and moves when it is told to.
 *
 * Where the contract leaves a choice (which of many overdue jobs a chunk takes), the model answers
 * with those that may be taken, and is told afterwards which were.
 */
export type ModelStatus = "queued" | "running" | "succeeded" | "failed" | "timed_out" | "cancelled";

export interface ModelJob {
  readonly jobId: string;
  readonly task: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly payloadJson: string;
  readonly key: string | null;
  readonly fingerprint: string;
  readonly createdAt: number;
  status: ModelStatus;
  runAt: number;
  attempt: number;
  startedAt: number | null;
  finishedAt: number | null;
  beatAt: number | null;
  cancelAskedAt: number | null;
  workerId: string | null;
  /** `ANY` stands for any message. */
  error: string | null;
  progress: string | null;
  readonly attemptErrors: { attempt: number; workerId: string; at: number; error: string }[];
  result: string | null;
}

/** A message whose words the contract leaves open. */
export const ANY = "any message";
const STUCK = "WorkerLost: Heartbeat timeout — job stuck";
const WAITED = "WaitTimeout: worker wait timeout";

export interface ModelSubmit {
  readonly jobId: string;
  readonly task: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly payloadJson: string;
  readonly delayMs: number;
  readonly key: string | null;
  readonly fingerprint: string;
}

/** `full` with the depth; the others with the job that they name. */
export type ModelAnswer = readonly ["accepted" | "repeated" | "conflict", string] | number;

export type ModelEnd =
  | { readonly event: "succeed"; readonly resultJson: string }
  | { readonly event: "fail" | "time_out"; readonly errorMessage: string }
  | { readonly event: "stop" | "release" }
  | { readonly event: "retry"; readonly errorMessage: string; readonly delayMs: number };

interface ModelWorker {
  readonly workerId: string;
  readonly tasks: readonly string[];
  readonly beatAt: number;
}

export class Model {
  now = 0;
  jobs: ModelJob[] = [];
  workers: ModelWorker[] = [];

  in(status: ModelStatus): ModelJob[] {
    return this.jobs.filter((job) => job.status === status);
  }

  ended(): ModelJob[] {
    return this.jobs.filter((job) => job.status !== "queued" && job.status !== "running");
  }

  depth(): number {
    return this.in("queued").length + this.in("running").length;
  }

  find(jobId: string): ModelJob | undefined {
    return this.jobs.find((job) => job.jobId === jobId);
  }

  /** One after the other; a whole call as if there were room for all, and then undone if it must be. */
  submit(list: readonly ModelSubmit[], maxDepth: number, whole: boolean): ModelAnswer[] {
    const before = [...this.jobs];
    const room = whole ? Infinity : maxDepth;
    const tried = list.map((given) => this.submitOne(given, room));
    const kinds = tried.map((answer) => (typeof answer === "number" ? "full" : answer[0]));
    const overfull = kinds.includes("accepted") && this.depth() > maxDepth;
    if (!whole || !(overfull || kinds.includes("conflict"))) return this.inTheEnd(tried);
    this.jobs = before;
    return tried.map((answer) => {
      const named = typeof answer === "number" ? undefined : this.find(answer[1]);
      // A conflict with a mate stays one, though the mate is not there.
      if (typeof answer !== "number" && (named !== undefined || answer[0] === "conflict"))
        return answer;
      return this.depth();
    });
  }

  /** All that found no room are told the depth in the end. */
  private inTheEnd(answers: readonly ModelAnswer[]): ModelAnswer[] {
    return answers.map((answer) => (typeof answer === "number" ? this.depth() : answer));
  }

  private submitOne(given: ModelSubmit, maxDepth: number): ModelAnswer {
    const known = this.jobs.find((job) => job.key !== null && job.key === given.key);
    if (known !== undefined)
      return [known.fingerprint === given.fingerprint ? "repeated" : "conflict", known.jobId];
    if (this.depth() >= maxDepth) return this.depth();
    const { delayMs, ...rest } = given;
    this.jobs.push({
      ...rest,
      createdAt: this.now,
      status: "queued",
      runAt: this.now + delayMs,
      attempt: 0,
      startedAt: null,
      finishedAt: null,
      beatAt: null,
      cancelAskedAt: null,
      workerId: null,
      error: null,
      progress: null,
      attemptErrors: [],
      result: null,
    });
    return ["accepted", given.jobId];
  }

  /** The one that has been due for longest; null where none is due. */
  oldestDueAt(): number | null {
    const due = this.in("queued").filter((job) => job.runAt <= this.now);
    return due.length === 0 ? null : Math.min(...due.map((job) => job.runAt));
  }

  waiting(): { task: string; queued: number }[] {
    const tasks = [...new Set(this.in("queued").map((job) => job.task))];
    return tasks
      .map((task) => ({
        task,
        queued: this.in("queued").filter((job) => job.task === task).length,
      }))
      .sort((a, b) => b.queued - a.queued || (a.task < b.task ? -1 : 1));
  }

  claim(workerId: string, tasks: readonly string[], limit: number): ModelJob[] {
    const taken = this.in("queued")
      .filter((job) => job.runAt <= this.now && tasks.includes(job.task))
      .sort((a, b) => b.priority - a.priority || a.runAt - b.runAt || (a.jobId < b.jobId ? -1 : 1))
      .slice(0, Math.max(0, limit));
    for (const job of taken) {
      job.status = "running";
      job.attempt += 1;
      job.workerId = workerId;
      job.startedAt = this.now;
      job.beatAt = this.now;
      job.error = null;
    }
    return taken;
  }

  private isOwned(jobId: string, workerId: string, attempt: number): ModelJob | undefined {
    const job = this.find(jobId);
    return job?.status === "running" && job.workerId === workerId && job.attempt === attempt
      ? job
      : undefined;
  }

  settle(jobId: string, workerId: string, attempt: number, end: ModelEnd): ModelStatus | null {
    const job = this.isOwned(jobId, workerId, attempt);
    if (job === undefined) return null;
    const mustStop = job.cancelAskedAt !== null;
    switch (end.event) {
      case "succeed":
        this.finish(job, "succeeded", null);
        job.result = end.resultJson;
        break;
      case "fail":
        this.finish(job, "failed", end.errorMessage);
        break;
      case "time_out":
        this.finish(job, "timed_out", end.errorMessage);
        break;
      case "stop":
        this.finish(job, "cancelled", null);
        break;
      case "retry":
        if (mustStop) this.finish(job, "cancelled", null);
        else if (job.attempt >= job.maxAttempts) return null;
        else this.requeue(job, end.errorMessage, this.now + end.delayMs);
        break;
      case "release":
        if (mustStop) this.finish(job, "cancelled", null);
        else {
          job.status = "queued";
          job.attempt -= 1;
        }
        break;
    }
    return job.status;
  }

  beat(
    worker: { readonly workerId: string; readonly tasks: readonly string[] },
    jobs: readonly { jobId: string; attempt: number; progressJson?: string }[],
  ): { cancelRequested: string[]; lost: string[] } {
    const { workerId, tasks } = worker;
    this.workers = this.workers.filter((other) => other.workerId !== workerId);
    this.workers.push({ workerId, tasks, beatAt: this.now });
    const cancelRequested: string[] = [];
    const lost: string[] = [];
    for (const { jobId, attempt, progressJson } of jobs) {
      const job = this.isOwned(jobId, workerId, attempt);
      if (job === undefined) lost.push(jobId);
      else {
        job.beatAt = this.now;
        if (progressJson !== undefined) job.progress = progressJson;
        if (job.cancelAskedAt !== null) cancelRequested.push(jobId);
      }
    }
    return { cancelRequested, lost };
  }

  leave(workerId: string): void {
    this.workers = this.workers.filter((worker) => worker.workerId !== workerId);
  }

  cancel(jobId: string): "cancelled" | "requested" | "terminal" | "unknown" {
    const job = this.find(jobId);
    if (job === undefined) return "unknown";
    if (job.status === "queued") {
      this.finish(job, "cancelled", null);
      return "cancelled";
    }
    if (job.status !== "running") return "terminal";
    job.cancelAskedAt ??= this.now;
    return "requested";
  }

  mayExpire(waitLimitMs: number): ModelJob[] {
    return this.in("queued").filter(
      (job) => job.runAt <= this.now && this.now - job.runAt > waitLimitMs,
    );
  }

  expire(job: ModelJob): void {
    this.finish(job, "timed_out", WAITED);
  }

  mayReject(workerId: string, graceMs: number, workerTimeoutMs: number): ModelJob[] {
    const living = this.workers.filter((worker) => this.now - worker.beatAt <= workerTimeoutMs);
    if (!living.some((worker) => worker.workerId === workerId)) return [];
    return this.mayExpire(graceMs).filter(
      (job) => !living.some((worker) => worker.tasks.includes(job.task)),
    );
  }

  reject(job: ModelJob): void {
    this.finish(job, "failed", ANY);
  }

  mayRescue(jobTimeoutMs: number, workerTimeoutMs: number, gone: readonly string[]): ModelJob[] {
    return this.in("running").filter((job) => {
      const silence = this.now - (job.beatAt ?? 0);
      const worker = this.workers.find((other) => other.workerId === job.workerId);
      const workerSilence = worker === undefined ? silence : this.now - worker.beatAt;
      return (
        silence > jobTimeoutMs ||
        workerSilence > workerTimeoutMs ||
        gone.includes(job.workerId ?? "")
      );
    });
  }

  rescue(job: ModelJob): ModelStatus {
    if (job.cancelAskedAt !== null) this.finish(job, "cancelled", null);
    else if (job.attempt >= job.maxAttempts) this.finish(job, "failed", STUCK);
    else this.requeue(job, STUCK, this.now);
    return job.status;
  }

  forgetLostWorkers(workerTimeoutMs: number, gone: readonly string[]): void {
    this.workers = this.workers.filter((worker) => {
      const lost = this.now - worker.beatAt > workerTimeoutMs || gone.includes(worker.workerId);
      return !lost || this.in("running").some((job) => job.workerId === worker.workerId);
    });
  }

  /** How many the next chunk forgets; which ones follows from when they ended. */
  evictable(ttlMs: number, keep: number, chunk: number): number {
    const ended = this.ended();
    const old = ended.filter((job) => this.now - (job.finishedAt ?? 0) > ttlMs).length;
    return Math.min(chunk, Math.max(old, ended.length - keep, 0));
  }

  forget(jobId: string): void {
    this.jobs = this.jobs.filter((job) => job.jobId !== jobId);
  }

  private requeue(job: ModelJob, error: string, runAt: number): void {
    const { attempt, workerId, attemptErrors } = job;
    attemptErrors.push({ attempt, workerId: workerId ?? "", at: this.now, error });
    job.status = "queued";
    job.error = error;
    job.runAt = runAt;
  }

  private finish(job: ModelJob, status: ModelStatus, error: string | null): void {
    job.status = status;
    job.error = error;
    job.finishedAt = this.now;
  }
}
