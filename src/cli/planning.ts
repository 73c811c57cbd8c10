/** What the plan commands do: each opens the store, and a phase runs here in place, or as a job in any worker. */
import { stat } from "node:fs/promises";
import { processEnvironment } from "../config.js";
import { planJson } from "../http/plan-json.js";
import { STATES } from "../http/wire.js";
import { formatJobId, formatPlanId } from "../job/id.js";
import type { Job, Phase } from "../job/job.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import { readPlanFile } from "../plan/file/read.js";
import type { Place, Plans, ReadPlan, StartOutcome } from "../plan/plans.js";
import { openWorkspace } from "../plan/workspace/workspace.js";
import { systemClock } from "../runtime/clock.js";
import { EXIT, misuse, type ExitCode } from "./exit-code.js";
import { showPhase } from "./plan-follow.js";
import { inPlace, withPlans, type PlanSession } from "./plan-session.js";
import { filesText, patchText, planTable, planText } from "./plan-text.js";
import { safeJson } from "./text.js";
import type { Invocation } from "./verb.js";

/** What git is called with. */
const HOST = { env: processEnvironment(), clock: systemClock };

export async function execute(invocation: Invocation): Promise<ExitCode> {
  return runPhase(invocation, "execute", async (plans, asked) => {
    const read = await readAsked(plans, asked);
    return (place) => plans.execute(read, place);
  });
}

export async function apply(invocation: Invocation): Promise<ExitCode> {
  if (invocation.options["check"] === true) return checkApply(invocation);
  return runPhase(invocation, "apply", async (plans, asked) => {
    const plan = await findAsked(plans, asked);
    return (place) => plans.apply(plan, place);
  });
}

type Start = (place?: Place) => Promise<StartOutcome>;

/** In place unless async is asked for: `async_enabled` is off for plans by default. */
async function runPhase(
  invocation: Invocation,
  phase: Phase,
  prepare: (plans: Plans, asked: string) => Promise<Start>,
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
    const start = await prepare(session.plans, asked);
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
    return showPhase(session, plan, phase, { live: options["follow"] === true });
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

async function checkApply(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json, args } = invocation;
  return withPlans(invocation, { create: false }, async ({ plans }) => {
    const plan = await findAsked(plans, args[0] ?? "");
    const { definition, patch, outcome } = await plans.applicable(plan);
    const workspace = await openWorkspace(definition.workspace, HOST);
    const fit = await workspace.checkApply(patch);
    const conflicts = fit.kind === "fits" ? [] : fit.conflicts;
    if (json)
      terminal.print(
        safeJson(JSON.stringify({ fits: fit.kind === "fits", conflicts, files: outcome.files })),
      );
    else if (fit.kind === "fits")
      terminal.print(`it fits\n${filesText(outcome.files, terminal.look)}`);
    for (const { file, line, reason } of json ? [] : conflicts)
      terminal.complain(`${file}${line === null ? "" : `:${String(line)}`}: ${reason}`);
    return fit.kind === "fits" ? EXIT.done : EXIT.failed;
  });
}

export async function show(invocation: Invocation): Promise<ExitCode> {
  const { terminal, json, options, args } = invocation;
  return withPlans(invocation, { create: false }, async ({ plans }) => {
    const view = await plans.show(await findAsked(plans, args[0] ?? ""));
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
  return withPlans(invocation, { create: false }, async ({ plans }) => {
    const plan = await findAsked(plans, args[0] ?? "");
    const patch = await plans.diff(plan);
    if (patch === null) {
      terminal.complain(`plan ${plan.name} has no patch: no execute of it succeeded`);
      return EXIT.failed;
    }
    // Someone reads it, or something takes it as it is.
    if (terminal.look.columns === null) terminal.pass(patch);
    else terminal.print(patchText(Buffer.from(patch).toString("utf8"), terminal.look));
    return EXIT.done;
  });
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
  return withPlans(invocation, { create: false }, async ({ plans }) => {
    const plan = await findAsked(plans, args[0] ?? "");
    const outcome = await plans.cancel(plan);
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

/** A file as it is now; or what was seen under an id or a name: its file as it is now, or as it was when it is gone. */
async function readAsked(plans: Plans, asked: string): Promise<ReadPlan> {
  if (await isFile(asked)) return readFrom(asked, process.cwd());
  const plan = await plans.find(asked);
  if (plan.file !== null && (await isThere(plan.file))) return readFrom(plan.file, plan.workspace);
  return { definition: await plans.lastDefinition(plan), file: plan.file };
}

/** @param fallback the workspace of a plan that names none, or a folder in it. */
async function readFrom(path: string, fallback: string): Promise<ReadPlan> {
  const { file, workspace, ...plan } = await readPlanFile(path);
  const { root } = await openWorkspace(workspace ?? fallback, HOST);
  return { definition: { ...plan, workspace: root }, file };
}

/** The plan that a file, an id or a name means. */
async function findAsked(plans: Plans, asked: string): Promise<PlanRecord> {
  if (!(await isFile(asked))) return plans.find(asked);
  const { definition } = await readFrom(asked, process.cwd());
  return plans.find(definition.name, definition.workspace);
}

/** What looks like the path of a plan is one, also when nothing is there: then that is told. */
async function isFile(asked: string): Promise<boolean> {
  return /[/\\]|\.(ya?ml|json)$/.test(asked) || isThere(asked);
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
