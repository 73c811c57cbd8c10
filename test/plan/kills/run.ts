/**
 * Kills what runs a plan at random moments, lets the next worker recover, and compares everything with
 * what it was before, or with what the patch makes of it: there is nothing between. Workers and commands
 * are those of the built command line; the plans are asked for in this process.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Job, Phase } from "../../../src/job/job.js";
import { isTerminal } from "../../../src/job/state.js";
import type { Ledger } from "../../../src/ledger/ledger.js";
import type { PlanRecord } from "../../../src/ledger/plan-records.js";
import { Plans } from "../../../src/plan/plans.js";
import { systemClock } from "../../../src/runtime/clock.js";
import { idSource } from "../../../src/runtime/random.js";
import { openBuiltLedger } from "../../faults/books/open-ledger.js";
import { pause } from "../../faults/pause.js";
import { systemProcesses } from "../../../src/runtime/process-identity.js";
import { Command } from "../../faults/processes/command.js";
import { SeededRandom } from "../../sim/seeded-random.js";
import { Scratch } from "../scratch.js";
import { KillWorkspace } from "./workspace.js";

export interface KillOptions {
  readonly kills: number;
  readonly seed: number;
  readonly say?: (line: string) => void;
}

export interface KillReport {
  readonly kills: Readonly<Record<Phase, number>>;
  /** Of them, those that met a command that ran the phase in place. */
  readonly inPlace: number;
  /** Kills that met the phase between its start and its end. */
  readonly met: number;
  /** Of the applies that were met: taken back, finished. */
  readonly takenBack: number;
  readonly finished: number;
  /** The workspace was neither as before nor fully changed when the process had died. */
  readonly torn: number;
  readonly tookMs: number;
  /** What does not hold; empty when all does. */
  readonly faults: readonly string[];
}

/** All of it is there within this, or it is a fault. */
const LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 25;
const MOST_FAULTS = 20;

type View = Readonly<Record<string, string>>;

export async function killPlans(options: KillOptions): Promise<KillReport> {
  const scratch = new Scratch();
  const store = `sqlite:${scratch.path("jobs.db")}`;
  const ledger = await openBuiltLedger(store);
  const run = new KillRun(scratch, store, ledger, options);
  try {
    return await run.play();
  } finally {
    await run.close();
    await ledger.close();
    scratch.remove();
  }
}

class KillRun {
  readonly #scratch: Scratch;
  readonly #store: string;
  readonly #ledger: Ledger;
  readonly #options: KillOptions;
  readonly #random: SeededRandom;
  readonly #workspace: KillWorkspace;
  readonly #plans: Plans;
  readonly #name: string;
  readonly #before: View;
  #after: View = {};
  #worker: Command | null = null;
  /** How long each phase takes that nobody disturbs, ms. */
  readonly #tookMs = { execute: 0, apply: 0 };
  readonly #counts = {
    execute: 0,
    apply: 0,
    inPlace: 0,
    met: 0,
    takenBack: 0,
    finished: 0,
    torn: 0,
  };
  readonly #faults: string[] = [];

  constructor(scratch: Scratch, store: string, ledger: Ledger, options: KillOptions) {
    this.#scratch = scratch;
    this.#store = store;
    this.#ledger = ledger;
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#workspace = new KillWorkspace(scratch);
    const newId = idSource(systemClock, this.#random);
    this.#plans = new Plans({ ledger, newId, asyncMaxQueue: 16, processes: systemProcesses() });
    this.#name = `kills-${String(options.seed)}-${String(process.pid)}`;
    this.#before = this.#workspace.look();
    mkdirSync(scratch.path("tmp"));
  }

  async play(): Promise<KillReport> {
    const startedMs = performance.now();
    await this.#startWorker();
    await this.#rehearse();
    const { kills } = this.#options;
    for (let kill = 1; kill <= kills && this.#faults.length < MOST_FAULTS; kill += 1) {
      const phase = await this.#next();
      this.#counts[phase] += 1;
      const inPlace = phase === "apply" && this.#random.oneIn(4);
      if (inPlace) this.#counts.inPlace += 1;
      const job = inPlace ? await this.#killCommand() : await this.#killWorker(phase);
      const found = this.#workspace.look();
      const isWhole = [this.#before, this.#after].some((view) => isDeepStrictEqual(view, found));
      if (!isWhole) this.#counts.torn += 1;
      await this.#startWorker();
      await this.#judge(phase, job, kill);
    }
    const { execute, apply, ...counts } = this.#counts;
    const tookMs = Math.round(performance.now() - startedMs);
    return { kills: { execute, apply }, ...counts, tookMs, faults: this.#faults };
  }

  async close(): Promise<void> {
    this.#worker?.signal("SIGKILL");
    await this.#worker?.ended;
  }

  /** Once without a kill: what the patch makes of the workspace, and how long that takes. */
  async #rehearse(): Promise<void> {
    for (const phase of ["execute", "apply"] as const) {
      const startedMs = performance.now();
      await this.#undisturbed(phase);
      this.#tookMs[phase] = performance.now() - startedMs;
    }
    this.#after = this.#workspace.look();
    if (isDeepStrictEqual(this.#after, this.#before)) throw new Error("the plan changes nothing");
    this.#workspace.reset();
  }

  async #undisturbed(phase: Phase): Promise<void> {
    const job = await this.#start(phase);
    const ended = await this.#ended(job.jobId);
    if (ended.status !== "succeeded")
      throw new Error(`${phase}: ${ended.errorMessage ?? ended.status}`);
  }

  /** Two in five are executes; an apply needs one that succeeded. */
  async #next(): Promise<Phase> {
    if (this.#random.unit() < 0.4) return "execute";
    const plan = await this.#plan();
    const isThere = await this.#plans.applicable(plan).then(
      () => true,
      () => false,
    );
    if (!isThere) await this.#undisturbed("execute");
    return "apply";
  }

  async #killWorker(phase: Phase): Promise<Job> {
    const job = await this.#start(phase);
    await this.#moment(phase, job.jobId);
    await this.close();
    return job;
  }

  /** `plan apply` in place; the worker beside it is killed afterwards, so that the next one starts. */
  async #killCommand(): Promise<Job> {
    const known = await this.#newestJob();
    const command = this.#command(["plan", "apply", this.#name]);
    // Most of its time goes by before it has asked for anything.
    let job = known;
    const deadlineMs = performance.now() + LIMIT_MS;
    while (job?.jobId === known?.jobId && !command.over && performance.now() < deadlineMs) {
      await pause(LOOK_EVERY_MS);
      job = await this.#newestJob();
    }
    if (job === null || job.jobId === known?.jobId)
      throw new Error(`plan apply asked for nothing: ${command.stdout}`);
    await this.#moment("apply", job.jobId);
    command.signal("SIGKILL");
    await command.ended;
    await this.close();
    return job;
  }

  /** Half the time any; half the time while the patch is on its way, or its steps run. */
  async #moment(phase: Phase, jobId: string): Promise<void> {
    const wholeMs = this.#tookMs[phase];
    if (phase === "apply" && this.#random.oneIn(2)) {
      const journal = join(this.#workspace.gitDir, "jobtable/applies", jobId, "journal.json");
      const deadlineMs = performance.now() + 2 * wholeMs;
      while (!existsSync(journal) && performance.now() < deadlineMs) await pause(1);
      await pause(this.#random.unit() * wholeMs * 0.4);
    } else await pause(this.#random.unit() * wholeMs);
  }

  /** After the next worker has come: what there is, what is on record, and that nothing else is left. */
  async #judge(phase: Phase, { jobId }: Job, kill: number): Promise<void> {
    const [killed] = await this.#ledger.get([jobId]);
    // One that waited for its command, which is gone: nobody else may run it, and the user cancels it.
    if (killed?.status === "queued" && killed.task.includes(":01"))
      await this.#plans.cancel(await this.#plan());
    const job = await this.#ended(jobId);
    const clean = await this.#until(() => this.#leftovers().length === 0);
    const fault = (what: string): void => {
      this.#faults.push(`kill ${String(kill)} (${phase} ${jobId}): ${what}`);
    };
    if (!clean) fault(`left behind: ${this.#leftovers().join(", ")}`);
    const now = this.#workspace.look();
    const { status, outcome } = (await this.#plans.show(await this.#plan()))[phase] ?? {};
    const isMet = job.errorMessage !== null || job.status !== "succeeded";
    if (isMet) this.#counts.met += 1;
    this.#options.say?.(
      `kill ${String(kill)}: ${phase} ${status ?? "?"}, job ${job.status} ${job.errorMessage ?? ""}`,
    );
    if (phase === "execute") {
      differences(this.#before, now).forEach(fault);
      const hasPatch = (await this.#ledger.plans.patch(jobId)) !== null;
      if (hasPatch !== (status === "succeeded"))
        fault(`it ${status ?? "is unknown"}, and has ${hasPatch ? "a" : "no"} patch`);
      return;
    }
    const isDone = status === "succeeded";
    differences(isDone ? this.#after : this.#before, now).forEach((line) =>
      fault(`said to have ${status ?? "?"}: ${line}`),
    );
    if (isDone !== (outcome?.executeJobId !== undefined)) fault("its outcome names no execute");
    if (isMet) this.#counts[isDone ? "finished" : "takenBack"] += 1;
    if (isDone || this.#faults.length > 0) this.#workspace.reset();
  }

  /** Of the dead: sandboxes, journals, work trees, temporary files, processes. */
  #leftovers(): string[] {
    const tmp = this.#scratch.path("tmp");
    const own = `jobtable-${String(process.geteuid?.())}`;
    const inTmp = ["", own, `${own}/sandboxes`]
      .filter((folder) => existsSync(join(tmp, folder)))
      .flatMap((folder) => readdirSync(join(tmp, folder)))
      .filter((name) => name !== own && name !== "sandboxes");
    return [...this.#workspace.leftovers(), ...inTmp, ...stepProcesses(this.#name)];
  }

  async #start(phase: Phase): Promise<Job> {
    const base = this.#random.pick(["head", "working-tree"] as const);
    const definition = this.#workspace.plan(this.#name, base);
    const outcome = await (phase === "execute"
      ? this.#plans.execute({ definition, file: null })
      : this.#plans.apply(await this.#plan()));
    if (outcome.kind !== "started") throw new Error(`${phase} was not started: ${outcome.kind}`);
    return outcome.job;
  }

  #plan(): Promise<PlanRecord> {
    return this.#plans.find(this.#name);
  }

  async #newestJob(): Promise<Job | null> {
    const { jobs } = await this.#ledger.list({ limit: 1 });
    return jobs[0] ?? null;
  }

  async #ended(jobId: string): Promise<Job> {
    const look = async (): Promise<Job | null> => {
      const [job] = await this.#ledger.get([jobId]);
      return job !== undefined && job !== null && isTerminal(job.status) ? job : null;
    };
    await this.#until(async () => (await look()) !== null);
    const job = await look();
    if (job === null) throw new Error(`job ${jobId} did not end`);
    return job;
  }

  async #until(holds: () => boolean | Promise<boolean>): Promise<boolean> {
    const deadlineMs = performance.now() + LIMIT_MS;
    while (!(await holds())) {
      if (performance.now() > deadlineMs) return false;
      await pause(LOOK_EVERY_MS);
    }
    return true;
  }

  async #startWorker(): Promise<void> {
    this.#worker = this.#command(["worker"]);
    if ((await this.#worker.says(/^jobtable worker \S+ ready$/m)) === null)
      throw new Error("the worker did not start");
  }

  #command(args: readonly string[]): Command {
    const tmp = this.#scratch.path("tmp");
    return new Command({
      args: [...args, "--store", this.#store],
      cwd: this.#scratch.dir,
      env: { ...this.#scratch.env, TMPDIR: tmp },
      log: this.#scratch.path("log"),
    });
  }
}

/** Up to three lines. */
function differences(expected: View, now: View): string[] {
  const paths = new Set([...Object.keys(expected), ...Object.keys(now)]);
  return [...paths]
    .filter((path) => expected[path] !== now[path])
    .slice(0, 3)
    .map((path) => `${path}: expected ${String(expected[path])}, found ${String(now[path])}`);
}

/** Of steps of this plan; on Linux. */
function stepProcesses(plan: string): string[] {
  const mark = `JOBTABLE_PLAN=${plan}\0`;
  return (existsSync("/proc/self/environ") ? readdirSync("/proc") : []).filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark);
    } catch {
      return false;
    }
  });
}
