/**
 * The rules of the house that a machine can hold. test/house/lint.test.ts proves that they bite.
 * Flat config replaces a rule's options rather than merging them, so the lists of what is banned
 * where are put together here, per place.
 */
import tseslint from "typescript-eslint";
import { housePlugin } from "./scripts/lint/house-plugin.js";

const ENV = { object: "process", property: "env", message: "read settings from src/config.ts" };
const EXIT = {
  object: "process",
  property: "exit",
  message: "only src/cli/main.ts ends the process",
};
const TIME = [
  { object: "Date", property: "now", message: "take a Clock (src/runtime/clock.ts)" },
  { object: "Math", property: "random", message: "take a Random (src/runtime/random.ts)" },
];
const TIMERS = ["setTimeout", "setInterval", "setImmediate"].map((name) => ({
  name,
  message: "take a Clock (src/runtime/clock.ts); a turn of the event loop needs its reason",
}));
const PROCESS_IMPORT = { name: "node:process", message: "use the global, which the rules watch" };
const TIMER_IMPORTS = ["node:timers", "node:timers/promises"].map((name) => ({
  name,
  message: "take a Clock (src/runtime/clock.ts)",
}));

const NEW_DATE = {
  selector: "NewExpression[callee.name='Date'][arguments.length=0]",
  message: "take a Clock (src/runtime/clock.ts)",
};
const SHAPES = [
  { selector: "ExportAllDeclaration", message: "re-export by name" },
  { selector: "TSEnumDeclaration", message: "use `const X = {...} as const`" },
  { selector: "ExportDefaultDeclaration", message: "export by name" },
  {
    selector: "TSAsExpression > TSAsExpression[typeAnnotation.type='TSUnknownKeyword']",
    message: "`as unknown as` hides a wrong type: narrow it",
  },
];

/** An empty list is "off": with no options, a rule keeps those of the entry before it. */
const ban = (list) => (list.length === 0 ? "off" : ["error", ...list]);
const restricted = ({ properties = [], globals = [], imports = [], syntax = [] }) => ({
  "no-restricted-properties": ban(properties),
  "no-restricted-globals": ban(globals),
  "no-restricted-imports": ban(imports),
  "no-restricted-syntax": ban(syntax),
});

export default tseslint.config(
  { ignores: ["dist/", "bench/dist/", "node_modules/", ".cache/", "dashboard/dist/"] },
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    plugins: { house: housePlugin },
    rules: {
      "house/file-name": "error",
      "house/explain-disable": "error",
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-console": "error",
    },
  },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/consistent-type-exports": "error",
      "@typescript-eslint/no-import-type-side-effects": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/no-non-null-assertion": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      // An `async` verb without `await` turns what it throws into a rejection, which contracts ask for.
      "@typescript-eslint/require-await": "off",
    },
  },
  {
    files: ["src/**/*.ts"],
    rules: {
      "max-lines": ["error", 300],
      "max-lines-per-function": ["error", 70],
      ...restricted({
        properties: [ENV, EXIT, ...TIME],
        globals: TIMERS,
        imports: [PROCESS_IMPORT, ...TIMER_IMPORTS],
        syntax: [NEW_DATE, ...SHAPES],
      }),
    },
  },
  {
    files: ["src/config.ts"],
    rules: restricted({
      properties: [EXIT, ...TIME],
      globals: TIMERS,
      imports: TIMER_IMPORTS,
      syntax: [NEW_DATE, ...SHAPES],
    }),
  },
  {
    files: ["src/cli/main.ts"],
    rules: restricted({
      properties: [ENV, ...TIME],
      globals: TIMERS,
      imports: [PROCESS_IMPORT, ...TIMER_IMPORTS],
      syntax: [NEW_DATE, ...SHAPES],
    }),
  },
  {
    files: ["src/runtime/**/*.ts"],
    rules: restricted({
      properties: [ENV, EXIT],
      imports: [PROCESS_IMPORT],
      syntax: SHAPES,
    }),
  },
  {
    // Tests set the scene as they need it; what they may not do is stated in docs and reviewed.
    files: ["src/**/*.test.ts"],
    rules: {
      "max-lines": "off",
      "max-lines-per-function": "off",
      ...restricted({
        properties: [EXIT],
        imports: TIMER_IMPORTS,
        globals: TIMERS,
        syntax: SHAPES,
      }),
    },
  },
  {
    files: ["test/**/*.ts"],
    rules: restricted({
      properties: [EXIT],
      imports: TIMER_IMPORTS,
      globals: TIMERS,
      syntax: SHAPES.filter(({ selector }) => selector !== "ExportDefaultDeclaration"),
    }),
  },
  { files: ["scripts/**", "examples/**", "bench/**"], rules: { "no-console": "off" } },
);
