/** What the plan commands do: each opens the store, and a phase runs here in place, or as a job in any worker. */
import { planJson } from "../http/plan-json.js";
import { STATES } from "../http/wire.js";
import { formatJobId, formatPlanId } from "../job/id.js";
import type { Job, Phase } from "../job/job.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import { checkApply, editedSince, findAsked, readAsked, type PlansHere } from "../plan/asked.js";
import type { NewestPatch } from "../plan/applicable.js";
import type { Place, StartOutcome } from "../plan/plans.js";
import { EXIT, misuse, type ExitCode } from "./exit-code.js";
import { showPhase } from "./plan-follow.js";
import { inPlace, withPlans, type PlanSession } from "./plan-session.js";
import { filesText, patchText, planTable, planText } from "./plan-text.js";
import { safeJson } from "./text.js";
import type { Invocation } from "./verb.js";

export async function execute(invocation: Invocation): Promise<ExitCode> {
  return runPhase(invocation, "execute", async (here, asked) => {
    const read = await readAsked(here, asked, process.cwd());
    return (place) => here.plans.execute(read, place);
  });
}

export async function apply(invocation: Invocation): Promise<ExitCode> {
  if (invocation.options["check"] === true) return check(invocation);
  return runPhase(invocation, "apply", async (here, asked) => {
    const plan = await findAsked(here, asked, process.cwd());
    const edited = await editedSince(here, plan);
    return async (place) => {
      const outcome = await here.plans.apply(plan, place);
      if (outcome.kind === "started" && edited !== null)
        invocation.terminal.complain(
          `plan ${plan.name}: ${plan.file ?? ""} ${EDITED[edited]}: the steps of apply run as the execute recorded them; execute again for others`,
        );
      return outcome;
    };
  });
}

const EDITED = {
  edited: "has other steps of apply by now, or another env",
  unreadable: "is no plan any more",
} as const;

type Start = (place?: Place) => Promise<StartOutcome>;

/** In place unless async is asked for: `async_enabled` is off for plans by default. */
async function runPhase(
  invocation: Invocation,
  phase: Phase,
  prepare: (here: PlansHere, asked: string) => Promise<Start>,
): Promise<ExitCode> {
  const asked = invocation.args[0] ?? "";
  const asJob = isAsync(invocation);
  if (!asJob)
    for (const option of ["wait", "follow"])
      if (invocation.options[option] === true)
        throw misuse(
          `--${option}: the phase runs in place and is followed anyway; for a job, add --async-enabled`,
        );
  if (asJob && invocation.options["tasks"] !== undefined)
    throw misuse("--tasks: the worker that runs the job has tasks of its own; leave it out");
  return withPlans(invocation, { create: true }, async (session) => {
    const start = await prepare(session, asked);
    if (!asJob) return inPlace(session, phase, (place) => told(session, start, place));
    const job = await told(session, start);
    if (job === null) return EXIT.failed;
    return follow(session, phase, job);
  });
}

function isAsync({ settings, config }: Invocation): boolean {
  const { origin } = settings.find(({ name }) => name === "async_enabled") ?? {};
  return config.asyncEnabled && origin !== undefined && origin.kind !== "default";
}

/** The job that was started, or null where none was, which is told. */
async function told(
  { invocation: { terminal } }: PlanSession,
  start: Start,
  place?: Place,
): Promise<{ readonly plan: PlanRecord; readonly job: Job } | null> {
  const outcome = await start(place);
  switch (outcome.kind) {
    case "started":
      return outcome;
    case "held": {
      const { plan, job } = outcome;
      terminal.complain(
        `plan ${plan.name}: ${job.phase ?? "a phase"} is ${STATES[job.status]} as ${formatJobId(job.jobId)}; wait for its end, or cancel it with: jobtable plan cancel ${plan.name}`,
      );
      return null;
    }
    case "full":
      terminal.complain(`async queue full (max ${String(outcome.limit)}); try again later`);
      return null;
    default:
      return outcome satisfies never;
  }
}

async function follow(
  session: PlanSession,
  phase: Phase,
  { plan, job }: { readonly plan: PlanRecord; readonly job: Job },
): Promise<ExitCode> {
  const { terminal, json, options } = session.invocation;
  const jobId = formatJobId(job.jobId);
  if (options["wait"] === true || options["follow"] === true)
    return showPhase(
      { ...session, clock: session.host.clock },
      { plan, phase, jobId: job.jobId },
      { live: options["follow"] === true },
    );
  terminal.print(
    json
      ? JSON.stringify({
          plan_id: formatPlanId(plan.planId),
          phase,
          job_id: jobId,
          state: STATES[job.status],
        })
      : jobId,
  );
  return EXIT.done;
}

const STARTS_NOTHING = "looks at the files here and starts nothing; leave it out";

async function check(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json, args, options, settings } = invocation;
  for (const option of ["wait", "follow", "tasks"])
    if (options[option] !== undefined) throw misuse(`--${option}: --check ${STARTS_NOTHING}`);
  if (settings.some(({ name, origin }) => name === "async_enabled" && origin.kind === "flag"))
    throw misuse(`--async-enabled: --check ${STARTS_NOTHING}`);
  return withPlans(invocation, { create: false }, async (here) => {
    const { fit, files } = await checkApply(here, await asked(here, args));
    const conflicts = fit.kind === "fits" ? [] : fit.conflicts;
    if (json)
      terminal.print(safeJson(JSON.stringify({ fits: fit.kind === "fits", conflicts, files })));
    else if (fit.kind === "fits") terminal.print(`it fits\n${filesText(files, terminal.look)}`);
    for (const { file, line, reason } of json ? [] : conflicts)
      terminal.complain(`${file}${line === null ? "" : `:${String(line)}`}: ${reason}`);
    return fit.kind === "fits" ? EXIT.done : EXIT.failed;
  });
}

export async function show(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json, options, args } = invocation;
  return withPlans(invocation, { create: false }, async (here) => {
    const view = await here.plans.show(await asked(here, args));
    const logs = options["logs"] === true;
    terminal.print(
      json
        ? safeJson(JSON.stringify(planJson(view, { logs })))
        : planText(view, terminal.look, { logs }),
    );
    return EXIT.done;
  });
}

export async function diff(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json, args } = invocation;
  if (json) throw misuse("--json: a patch is text of its own kind; leave it out");
  return withPlans(invocation, { create: false }, async (here) => {
    const plan = await asked(here, args);
    const newest = await here.plans.newestPatch(plan);
    if (newest === null) {
      terminal.complain(`plan ${plan.name} has no patch: no execute of it succeeded`);
      return EXIT.failed;
    }
    const since = sinceText(newest);
    if (since !== null) terminal.complain(`plan ${plan.name}: ${since}`);
    // Someone reads it, or something takes it as it is.
    const { patch } = newest;
    if (terminal.look.columns === null) terminal.pass(patch);
    else terminal.print(patchText(Buffer.from(patch).toString("utf8"), terminal.look));
    return EXIT.done;
  });
}

/** What came after a patch, which is no news of the last execute then. */
function sinceText({ jobId, laterJobId, appliedJobId }: NewestPatch): string | null {
  const applied = appliedJobId === null ? null : `was applied by ${formatJobId(appliedJobId)}`;
  const later =
    laterJobId === null ? null : `a later execute, ${formatJobId(laterJobId)}, has none`;
  if (applied === null && later === null) return null;
  const said = [applied, later].filter((part) => part !== null).join("; ");
  return `this patch, of ${formatJobId(jobId)}${applied === null ? ":" : ","} ${said}`;
}

export async function list(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json } = invocation;
  return withPlans(invocation, { create: false }, async ({ plans }) => {
    const views = await plans.list();
    terminal.print(
      json
        ? safeJson(JSON.stringify({ plans: views.map((view) => planJson(view, { logs: false })) }))
        : planTable(views, terminal.look),
    );
    return EXIT.done;
  });
}

export async function cancel(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json, args } = invocation;
  return withPlans(invocation, { create: false }, async (here) => {
    const plan = await asked(here, args);
    const outcome = await here.plans.cancel(plan);
    if (outcome === null || outcome.kind === "unknown" || outcome.kind === "terminal") {
      terminal.complain(`plan ${plan.name}: no phase of it waits or runs`);
      return EXIT.failed;
    }
    const { job, kind } = outcome;
    const jobId = formatJobId(job.jobId);
    if (json) terminal.print(JSON.stringify({ job_id: jobId, state: STATES[job.status] }));
    else if (kind === "cancelled") terminal.print(`${jobId} cancelled`);
    else terminal.print(`${jobId} was told to stop; it is running until its worker has ended it`);
    return EXIT.done;
  });
}

function asked(here: PlansHere, [plan = ""]: readonly string[]): Promise<PlanRecord> {
  return findAsked(here, plan, process.cwd());
}
