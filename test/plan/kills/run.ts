/**
 * Kills what runs a plan at random moments, lets the next worker or the next command recover, and compares
 * everything with what it was before, or with what the patch makes of it: there is nothing between.
 * Workers and commands are those of the built command line; jobs are asked for in this process.
 */
import { existsSync, mkdirSync } from "node:fs";
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
import { differences, stepProcesses, temporaryFiles, type View } from "./found.js";
import type { After, KillOptions, KillReport } from "./report.js";
import { KillWorkspace } from "./workspace.js";

/** All of it is there within this, or it is a fault. */
const LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 25;
const MOST_FAULTS = 20;

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
    byCommand: 0,
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
      if (this.#worker?.over !== false) await this.#startWorker();
      const phase = await this.#next();
      this.#counts[phase] += 1;
      const inPlace = this.#random.oneIn(3);
      if (inPlace) this.#counts.inPlace += 1;
      const job = inPlace ? await this.#killCommand(phase) : await this.#killWorker(phase);
      const found = this.#workspace.look();
      const isWhole = [this.#before, this.#after].some((view) => isDeepStrictEqual(view, found));
      if (!isWhole) this.#counts.torn += 1;
      const next = this.#random.oneIn(2) ? null : this.#random.pick(["execute", phase] as const);
      if (next === null) await this.#startWorker();
      else this.#counts.byCommand += 1;
      const code = next === null ? null : await this.#nextCommand(next, job);
      await this.#judge(phase, job, { kill, next, code });
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

  /** In place; the worker beside it is killed afterwards, so that nobody is left to recover. */
  async #killCommand(phase: Phase): Promise<Job> {
    const known = await this.#newestJob();
    const command = this.#command(["plan", phase, this.#name]);
    // Most of its time goes by before it has asked for anything.
    let job = known;
    const deadlineMs = performance.now() + LIMIT_MS;
    while (job?.jobId === known?.jobId && !command.over && performance.now() < deadlineMs) {
      await pause(LOOK_EVERY_MS);
      job = await this.#newestJob();
    }
    if (job === null || job.jobId === known?.jobId)
      throw new Error(`plan ${phase} asked for nothing: ${command.stdout}`);
    await this.#moment(phase, job.jobId);
    command.signal("SIGKILL");
    await command.ended;
    await this.close();
    return job;
  }

  /**
   * A user who comes before any worker does, and again while he is told that the dead one's job holds
   * the plan. @returns the exit code.
   */
  async #nextCommand(phase: Phase, killed: Job): Promise<number | null> {
    const deadlineMs = performance.now() + LIMIT_MS;
    for (;;) {
      const [known = null] = await this.#ledger.get([killed.jobId]);
      const { code } = await this.#command(["plan", phase, this.#name]).ended;
      const isFree = known !== null && isTerminal(known.status);
      if (isFree || (await this.#newestJob())?.jobId !== killed.jobId) return code;
      if (performance.now() > deadlineMs) throw new Error(`job ${killed.jobId} holds its plan`);
    }
  }

  /**
   * Half the time any; half the time while the patch is on its way, or its steps run. The first apply is
   * killed as soon as it has begun to change files, so that one is met on a machine of any speed.
   */
  async #moment(phase: Phase, jobId: string): Promise<void> {
    const wholeMs = this.#tookMs[phase];
    const isFirst = phase === "apply" && this.#counts.apply === 1;
    if (isFirst || (phase === "apply" && this.#random.oneIn(2))) {
      const journal = join(this.#workspace.gitDir, "jobtable/applies", jobId, "journal.json");
      const deadlineMs = performance.now() + (isFirst ? LIMIT_MS : 2 * wholeMs);
      while (!existsSync(journal) && performance.now() < deadlineMs) await pause(1);
      if (!isFirst) await pause(this.#random.unit() * wholeMs * 0.4);
    } else await pause(this.#random.unit() * wholeMs);
  }

  /** After somebody has come: what there is, what is on record, and that nothing else is left. */
  async #judge(phase: Phase, { jobId }: Job, after: After): Promise<void> {
    const { kill, next, code } = after;
    const job = await this.#ended(jobId);
    const clean = await this.#until(() => this.#leftovers().length === 0);
    const fault = (what: string): void => {
      const who = next === null ? "worker" : `plan ${next}`;
      this.#faults.push(`kill ${String(kill)} (${phase} ${jobId}, then ${who}): ${what}`);
    };
    if (!clean) fault(`left behind: ${this.#leftovers().join(", ")}`);
    const now = this.#workspace.look();
    const { status, outcome } =
      (await this.#plans.show(await this.#plan(), { jobId }))[phase] ?? {};
    const isMet = job.errorMessage !== null || job.status !== "succeeded";
    if (isMet) this.#counts.met += 1;
    this.#options.say?.(
      `kill ${String(kill)}: ${phase} ${status ?? "?"}, job ${job.status} ${job.errorMessage ?? ""}`,
    );
    const isDone = status === "succeeded";
    const nextFault =
      next === null ? null : await this.#faultOf(next, code, phase === "apply" && isDone);
    if (nextFault !== null) fault(nextFault);
    if (phase === "execute") {
      differences(this.#before, now).forEach(fault);
      const hasPatch = (await this.#ledger.plans.patch(jobId)) !== null;
      if (hasPatch !== isDone)
        fault(`it ${status ?? "is unknown"}, and has ${hasPatch ? "a" : "no"} patch`);
      return;
    }
    const isChanged = isDone || next === "apply";
    differences(isChanged ? this.#after : this.#before, now).forEach((line) =>
      fault(`said to have ${status ?? "?"}: ${line}`),
    );
    if (isDone !== (outcome?.executeJobId !== undefined)) fault("its outcome names no execute");
    if (isMet) this.#counts[isDone ? "finished" : "takenBack"] += 1;
    if (isChanged || this.#faults.length > 0) this.#workspace.reset();
  }

  /** Of the command that came next. @param isApplied whether it found the patch in the workspace. */
  async #faultOf(next: Phase, code: number | null, isApplied: boolean): Promise<string | null> {
    const plan = await this.#plan();
    const { base } = await this.#plans.lastDefinition(plan);
    // The second apply of a patch that is there is refused, and steps that meet their own changes fail.
    const meetsItself = next === "execute" && isApplied && base === "working-tree";
    const expected = meetsItself || (next === "apply" && isApplied) ? 1 : 0;
    const why = (await this.#plans.show(plan))[next]?.errorMessage ?? "";
    const isWrong = code !== expected || (meetsItself && !why.startsWith("StepFailed:"));
    return isWrong ? `plan ${next} on base ${base} ended with ${String(code)}: ${why}` : null;
  }

  #leftovers(): string[] {
    const inTmp = temporaryFiles(this.#scratch.path("tmp"));
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
