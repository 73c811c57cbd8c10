/**
 * Which file may import which: one way, as docs/architecture.md draws it. `LAYERS` is the whole
 * law: the part of src/ on the left may import itself and what is named on the right, and nothing
 * else of src/. A file that belongs to no layer can't be imported at all, so a new part of the
 * code is given its place here first. test/house/dependencies.test.ts proves that each rule bites.
 */

const JOB = "src/job/";
const RUNTIME = "src/runtime/";
const TASK = "src/task/";
const CONTRACT = "src/ledger/[^/]+\\.ts$";
const CONFIG = "src/config(\\.ts$|/)";
const ENGINE = "src/engine/";
const HTTP = "src/http/";
const COMPOSE = "src/compose(\\.ts$|/)";
const JOBTABLE = "src/jobtable(\\.ts$|/)";
const PLAN = "src/plan/";
const CLIENT = "src/client(\\.ts$|/)";
const STORES = ["memory", "sqlite", "postgres"];
const STORE = `src/ledger/(${STORES.join("|")})/`;

/** What the two ledgers on SQL share. */
const SQL = "src/ledger/sql/";

const store = (name) => ({
  name: `${name}-ledger`,
  of: `src/ledger/${name}/`,
  may: [CONTRACT, ...(name === "memory" ? [] : [SQL]), JOB, RUNTIME],
});
const LAYERS = [
  { name: "job", of: JOB, may: [] },
  { name: "runtime", of: RUNTIME, may: [JOB] },
  { name: "task", of: TASK, may: [JOB, RUNTIME] },
  { name: "contract", of: CONTRACT, may: [JOB] },
  { name: "sql-ledgers", of: SQL, may: [CONTRACT, JOB, RUNTIME] },
  ...STORES.map(store),
  { name: "config", of: CONFIG, may: [JOB, RUNTIME] },
  { name: "engine", of: ENGINE, may: [CONTRACT, TASK, JOB, RUNTIME] },
  { name: "http", of: HTTP, may: [PLAN, ENGINE, CONTRACT, TASK, JOB, RUNTIME] },
  { name: "plan", of: PLAN, may: [ENGINE, CONTRACT, TASK, JOB, RUNTIME] },
  {
    name: "plan-parts",
    of: "src/plan/(file|steps)/",
    may: ["src/plan/definition\\.ts$", TASK, JOB, RUNTIME],
  },
  { name: "client", of: CLIENT, may: [JOB, "src/http/wire"] },
  {
    name: "compose",
    of: COMPOSE,
    may: [STORE, PLAN, ENGINE, CONTRACT, CONFIG, TASK, JOB, RUNTIME],
  },
  {
    name: "jobtable",
    of: JOBTABLE,
    may: [COMPOSE, PLAN, ENGINE, CONTRACT, CONFIG, TASK, JOB, RUNTIME],
  },
  {
    name: "index",
    of: "src/index\\.ts$",
    may: [JOBTABLE, COMPOSE, PLAN, ENGINE, CONTRACT, CONFIG, TASK, JOB, RUNTIME, CLIENT],
  },
  {
    name: "cli",
    of: "src/cli/",
    may: [HTTP, PLAN, CLIENT, COMPOSE, ENGINE, CONTRACT, CONFIG, TASK, JOB, RUNTIME],
  },
];

const TEST = "\\.test\\.ts$";
/** What is started or imported from outside: the command line, the library, its client, and worker threads. */
const ENTRIES = ["^src/cli/main\\.ts$", "^src/index\\.ts$", "^src/client\\.ts$", "-thread\\.ts$"];
const anchored = (patterns) => patterns.map((pattern) => `^${pattern}`);

const layerRules = LAYERS.map(({ name, of, may }) => ({
  name: `imports-of-${name}`,
  comment: `${of} may import itself${may.length === 0 ? "" : ` and ${may.join(", ")}`}`,
  severity: "error",
  from: { path: `^${of}`, pathNot: TEST },
  to: { path: "^(src|dashboard)/", pathNot: anchored([of, ...may]) },
}));

export default {
  forbidden: [
    ...layerRules,
    {
      name: "no-place-in-the-layout",
      comment: "a part of src/ that LAYERS does not name",
      severity: "error",
      from: {},
      to: { path: "^src/", pathNot: anchored(LAYERS.map(({ of }) => of)) },
    },
    {
      name: "no-circles",
      comment: "two files that need each other are one file, or miss a third",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      comment: "no entry point reaches it: it is dead, or its entry point is missing in ENTRIES",
      severity: "error",
      from: { path: ENTRIES },
      to: { reachable: false, path: "^src/", pathNot: [TEST, ...ENTRIES] },
    },
    {
      name: "no-dev-dependencies",
      comment: "what users install does not bring development packages",
      severity: "error",
      from: { path: "^src/", pathNot: TEST },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm"] },
    },
    {
      name: "no-unknown-packages",
      comment: "not in package.json, or not installed",
      severity: "error",
      from: { path: "^(src|test)/" },
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    },
    {
      name: "no-missing-files",
      comment: "nothing stands where the import points",
      severity: "error",
      from: { path: "^(src|test)/" },
      to: { couldNotResolve: true },
    },
    {
      name: "no-tests-in-src",
      comment: "production code imports neither tests nor what they share",
      severity: "error",
      from: { path: "^src/", pathNot: TEST },
      to: { path: ["^test/", TEST] },
    },
    {
      name: "no-server-code-in-the-dashboard",
      comment: "the dashboard is a client of the HTTP API",
      severity: "error",
      from: { path: "^dashboard/" },
      to: { path: "^src/" },
    },
  ],
  options: {
    // Types count: a layer that needs another's types depends on it.
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^dist/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
