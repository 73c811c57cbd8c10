/** A phase of a plan on a terminal: as it goes, here or elsewhere, and how it ended. */
import { planJson } from "../http/plan-json.js";
import { STATES } from "../http/wire.js";
import { formatJobId } from "../job/id.js";
import type { Phase } from "../job/job.js";
import { isTerminal } from "../job/state.js";
import type { Ledger } from "../ledger/ledger.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { Plans } from "../plan/plans.js";
import type { StepReport } from "../plan/step-report.js";
import type { EndedStep, StartedStep, StepsListener } from "../plan/steps/api.js";
import type { OutputStream } from "../plan/steps/step-log.js";
import type { PlanView, RunView } from "../plan/view.js";
import type { Clock } from "../runtime/clock.js";
import { EXIT, type ExitCode } from "./exit-code.js";
import { FreshOutput } from "./fresh-output.js";
import { patiently } from "./follow.js";
import { cleanLines, filesText, stepFoot, stepHead } from "./plan-text.js";
import { orNamed } from "./recorded.js";
import { clean, formatMs, safeJson } from "./text.js";
import type { PlainInvocation } from "./verb.js";

/** How often a phase that runs elsewhere is looked at; its steps' output is recorded as often. */
const LOOK_EVERY_MS = 1_000;

/** Where it is shown, and whether standard output is for JSON alone. */
type Shown = Pick<PlainInvocation, "terminal" | "json">;

/**
 * Steps that run in this process: what they write goes out as they write it. What nobody reads is
 * dropped, and told: it is in the step's log.
 */
export class PhaseOnTerminal implements StepsListener {
  readonly #invocation: Shown;
  /** Whether the terminal stands at the beginning of a line. */
  #atLineStart = true;
  #droppedBytes = 0;

  constructor(invocation: Shown) {
    this.#invocation = invocation;
  }

  began(jobId: string, plan: PlanRecord, phase: Phase): void {
    this.#say(`plan ${clean(plan.name)}: ${phase} in place as ${jobId}`);
  }

  stepStarted(step: StartedStep): void {
    this.#say(`-- ${stepHead(step)}`);
  }

  /** With `--json` standard output is for the answer alone. */
  stepWrote(_: StartedStep, stream: OutputStream, bytes: Uint8Array): void {
    const to = this.#invocation.json ? "stderr" : stream;
    if (this.#droppedBytes === 0 && this.#offer(bytes, to)) return;
    // The gap is told where it is, before what comes after it.
    if (this.#droppedBytes > 0 && this.#offer(this.#gap(), to)) {
      this.#droppedBytes = 0;
      if (this.#offer(bytes, to)) return;
    }
    this.#droppedBytes += bytes.byteLength;
  }

  #offer(bytes: Uint8Array, to: OutputStream): boolean {
    const isTaken = this.#invocation.terminal.offer(bytes, to);
    if (isTaken) this.#atLineStart = bytes.at(-1) === 0x0a;
    return isTaken;
  }

  #gap(): Uint8Array {
    const note = `[... ${String(this.#droppedBytes)} bytes not shown; plan show --logs has the step's log ...]\n`;
    return Buffer.from(this.#atLineStart ? note : `\n${note}`);
  }

  stepEnded(step: EndedStep): void {
    if (step.state !== "skipped") this.#say(`-- ${stepFoot(step)}`);
  }

  #say(line: string): void {
    const { terminal, json } = this.#invocation;
    const gap = this.#droppedBytes === 0 ? "" : this.#gap().toString();
    const text = `${gap}${gap !== "" || this.#atLineStart ? "" : "\n"}${line}`;
    this.#atLineStart = true;
    this.#droppedBytes = 0;
    if (json) terminal.explain(text);
    else terminal.print(text);
  }
}

export interface Followed {
  readonly invocation: Shown;
  readonly ledger: Pick<Ledger, "watch">;
  readonly plans: Pick<Plans, "look" | "show">;
  readonly clock: Clock;
}

export interface FollowedPhase {
  readonly plan: PlanRecord;
  readonly phase: Phase;
  readonly jobId: string;
}

/**
 * Goes with a phase that runs in a worker to its end; a store that restarts meanwhile is waited for, and
 * whatever ends it early, the job is named. @param live whether its steps' output is shown.
 */
export function showPhase(
  followed: Followed,
  phase: FollowedPhase,
  options: { readonly live: boolean },
): Promise<ExitCode> {
  const { terminal } = followed.invocation;
  return orNamed(formatJobId(phase.jobId), terminal, () => goWith(followed, phase, options));
}

async function goWith(
  { invocation, plans, ledger, clock }: Followed,
  { plan, phase, jobId }: FollowedPhase,
  { live }: { readonly live: boolean },
): Promise<ExitCode> {
  const { terminal, json } = invocation;
  const say = (text: string): void => {
    if (json) terminal.explain(text);
    else terminal.print(text);
  };
  const told = new ToldSteps(say);
  const status = live ? null : terminal.liveStatus();
  try {
    for (;;) {
      const run = await patiently(clock, () => plans.look(jobId, { steps: live }));
      if (run === null) throw new Error(`plan ${plan.name} has no ${phase} that was just started`);
      if (live) told.tell(run.steps);
      status?.show(`${formatJobId(run.jobId)} ${STATES[run.status]}`);
      if (isTerminal(run.status)) {
        status?.clear();
        const view = await patiently(clock, () => plans.show(plan, { jobId }));
        return printEnd(invocation, view, phase);
      }
      await changeOf(ledger, jobId, clock);
    }
  } finally {
    status?.clear();
  }
}

/** Resolves when the job has changed, or it is time to look at what its steps write. */
function changeOf(ledger: Followed["ledger"], jobId: string, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      unwatch();
      cancelTimer();
      resolve();
    };
    const cancelTimer = clock.timer(LOOK_EVERY_MS, over);
    const unwatch = ledger.watch(jobId, over);
  });
}

/** What was told already, so that each look adds what is new. */
class ToldSteps {
  readonly #say: (text: string) => void;
  readonly #outputs = new Map<number, FreshOutput>();
  readonly #ended = new Set<number>();

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  tell(steps: readonly StepReport[]): void {
    for (const step of steps) {
      if (step.state === "skipped" || this.#ended.has(step.index)) continue;
      let output = this.#outputs.get(step.index);
      if (output === undefined) {
        this.#outputs.set(step.index, (output = new FreshOutput()));
        this.#say(`-- ${stepHead(step)}`);
      }
      const fresh = output.take(step);
      if (fresh !== "") this.#say(cleanLines(fresh));
      if (step.state === "running") continue;
      this.#ended.add(step.index);
      this.#outputs.delete(step.index);
      this.#say(`-- ${stepFoot(step)}`);
    }
  }
}

/** How the phase ended, on standard output; a failure on standard error too. */
export function printEnd({ terminal, json }: Shown, view: PlanView, phase: Phase): ExitCode {
  const run = view[phase];
  if (json) terminal.print(safeJson(JSON.stringify(planJson(view, { logs: false }))));
  if (run?.status !== "succeeded") {
    if (!json) terminal.complain(`plan ${view.plan.name}: ${endLine(run, phase)}`);
    return EXIT.failed;
  }
  if (!json) {
    terminal.print(clean(endLine(run, phase)));
    terminal.print(filesText(run.outcome?.files ?? [], terminal.look));
    if (phase === "execute")
      terminal.print(
        `look at it: jobtable plan diff ${view.plan.name}\ntake it:    jobtable plan apply ${view.plan.name}`,
      );
  }
  return EXIT.done;
}

function endLine(run: RunView | null, phase: Phase): string {
  if (run === null) return `${phase} is not on record`;
  const { startedAtMs, finishedAtMs, errorMessage } = run;
  const after =
    startedAtMs === null || finishedAtMs === null
      ? ""
      : ` after ${formatMs(Math.max(0, finishedAtMs - startedAtMs))}`;
  return `${phase} ${STATES[run.status]}${after}${errorMessage === null ? "" : `: ${errorMessage}`}`;
}
