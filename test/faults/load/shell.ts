/**
 * Someone who submits from the shell, again and again, and waits there for the result. Only a submit
 * itself may find the ledger out of reach: once the job is recorded, the command has to wait.
 */
import { parseJobId } from "../../../src/job/id.js";
import type { Fleet } from "../processes/fleet.js";
import type { JobPlan } from "./job-plan.js";
import type { Accepted } from "./submitters.js";

/** As the command exits when the ledger can't be reached. */
const UNREACHABLE = 3;
/** And when the queue is full, or the job failed. */
const FAILED = 1;
const TRIES = 200;
/** As complaints and answers name a job. */
const JOB_ID = /job_[0-9A-Z]{26}/;

export class Shell {
  readonly faults: string[] = [];
  /** Commands that ended with `UNREACHABLE` and were given again. */
  unreachable = 0;
  readonly #fleet: Fleet;
  readonly #bound: number;

  constructor(fleet: Fleet, bound: number) {
    this.#fleet = fleet;
    this.#bound = bound;
  }

  async run(
    plans: readonly JobPlan[],
    over: () => boolean,
    onAccepted: (accepted: Accepted) => void,
  ): Promise<void> {
    for (const plan of plans) {
      const accepted = await this.#submit(plan, over);
      if (accepted !== null) onAccepted(accepted);
    }
  }

  async #submit(plan: JobPlan, over: () => boolean): Promise<Accepted | null> {
    const args = [
      ...["submit", plan.task, "--input", JSON.stringify(plan.part)],
      ...["--idempotency-key", plan.key],
      ...["--max-attempts", String(plan.maxAttempts), "--async-max-queue", String(this.#bound)],
      ...["--wait", "--json"],
    ];
    for (let tries = 0; tries < TRIES && !over(); tries += 1) {
      const { code, stdout, stderr } = await this.#fleet.run(args);
      if (over()) return null;
      if (code === UNREACHABLE) this.unreachable += 1;
      // The queue was full: nothing is printed then.
      else if (code !== FAILED || stdout !== "") return this.#answer(plan, code, stdout);
      // Also when the job was forgotten meanwhile: none is, as long as somebody may look.
      if (JOB_ID.test(stderr)) this.faults.push(`submit --wait gave up: ${stderr.trim()}`);
    }
    if (!over()) this.faults.push(`the shell could not submit job ${String(plan.part.n)}`);
    return null;
  }

  #answer(plan: JobPlan, code: number | null, stdout: string): Accepted | null {
    const { job_id, data } = JSON.parse(stdout === "" ? "{}" : stdout) as {
      readonly job_id?: string;
      readonly data?: { readonly n?: number };
    };
    const jobId = job_id === undefined ? null : parseJobId(job_id);
    if (code !== 0 || jobId === null || data?.n !== plan.part.n) {
      this.faults.push(`submit --wait ended with ${String(code)} and said ${stdout.trim()}`);
      return null;
    }
    return { jobId, plan, cancel: "none" };
  }
}
