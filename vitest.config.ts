import { dirname, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "vite";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const root = import.meta.dirname;

/**
 * Node can't start a thread from TypeScript, so in tests every `*-thread.js` that a source file
 * starts is the compiled one in dist/, which test/build.ts makes before the first test.
 */
function compiledThreads(): Plugin {
  return {
    name: "compiled-threads",
    enforce: "pre",
    transform(code, id) {
      if (!id.startsWith(resolve(root, "src"))) return undefined;
      const folder = resolve(root, "dist", relative(resolve(root, "src"), dirname(id)));
      return code.replaceAll(
        /new URL\("\.\/([\w-]+-thread\.js)", import\.meta\.url\)/g,
        (_, file: string) =>
          `new URL(${JSON.stringify(pathToFileURL(resolve(folder, file)).href)})`,
      );
    },
  };
}

/** Where single files take a minute. One of them begun last would run alone, with all else done. */
const LONG = ["test/faults", "test/e2e", "test/ledger", "test/plan", "test/engine", "src/plan"];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((folder) => moduleId.startsWith(`${resolve(root, folder)}/`));
      return at < 0 ? LONG.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  plugins: [compiledThreads()],
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "bench/src/**/*.test.ts"],
    // Takes minutes: `npm run stress` asks for it.
    exclude: [
      ...configDefaults.exclude,
      ...(process.env["JOBTABLE_TEST_STRESS_MS"] ? [] : ["test/stress/flat-memory.test.ts"]),
    ],
    globalSetup: ["test/build.ts", "test/postgres-setup.ts"],
    pool: "forks",
    // Most files wait for processes and disks half of their time: three share two cores well.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
