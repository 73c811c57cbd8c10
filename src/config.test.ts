import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { describeOrigin, resolveSettings, type Settings, type Sources } from "./config.js";
import { nearest } from "./job/nearest.js";
import { SETTING_NAMES, settingRow, type Config, type SettingName } from "./config/settings.js";
import { formatValue, maskStore, parseSize, readValue } from "./config/values.js";
import type { EngineSettings } from "./engine/api.js";
import { JobtableError } from "./job/errors.js";

const resolveWith = (sources: Partial<Sources> = {}): Settings =>
  resolveSettings({ flags: {}, env: {}, file: null, ...sources });
const file = (values: Record<string, unknown>): Sources["file"] => ({
  path: "jobtable.config.json",
  values,
});
const value = (name: SettingName, raw: string): unknown =>
  resolveWith({ flags: { [name]: raw } }).settings.find((setting) => setting.name === name)?.value;

/** The one line of the refusal. */
function refusal(sources: Partial<Sources>): string {
  try {
    resolveWith(sources);
  } catch (error) {
    if (error instanceof JobtableError && error.code === "invalid_config") return error.message;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("the defaults", () => {
  test("are those of the design", () => {
    const { config } = resolveWith();
    const engine: EngineSettings = config;
    expect(engine).toBe(config);
    expect(config).toEqual({
      asyncEnabled: true,
      asyncTimeoutMs: 300_000,
      asyncMaxQueue: 16,
      asyncJobTtlMs: 86_400_000,
      asyncMaxCompleted: 100_000,
      maxWorkers: 4,
      pollIntervalMs: 1_000,
      jobTimeoutMs: 3_600_000,
      workerTimeoutMs: 30_000,
      modelRunTimeoutMs: 0,
      maxQueueDepth: 0,
      cancelGraceMs: 2_000,
      shutdownTimeoutMs: 8_000,
      host: "127.0.0.1",
      port: 8_202,
      authToken: null,
      requestSizeLimitBytes: 16 * 1_024 * 1_024,
      defaultTask: null,
      store: "sqlite:.jobtable/jobs.db",
      plans: true,
      plansOverHttp: false,
      server: null,
      logLevel: "info",
    } satisfies Config);
    expect(Object.isFrozen(config)).toBe(true);
  });

  test("keep fewer ended jobs in memory", () => {
    expect(resolveWith({ flags: { store: "memory" } }).config.asyncMaxCompleted).toBe(100);
    expect(
      resolveWith({ env: { JOBTABLE_STORE: "memory" }, flags: { async_max_completed: "7" } }).config
        .asyncMaxCompleted,
    ).toBe(7);
  });

  test.each(SETTING_NAMES)("%s has a default that its own row accepts", (name) => {
    const row = settingRow(name);
    if (row.default === null) expect(resolveWith().config).toHaveProperty(row.key, null);
    else expect(readValue(row, row.default).kind).toBe("read");
  });
});

describe("origins", () => {
  const all: Sources = {
    flags: { port: "1" },
    env: { JOBTABLE_PORT: "2", JOBTABLE_HOST: "::1" },
    file: file({ port: 3, host: "localhost", max_workers: 9 }),
  };

  test("flag > environment > file > default", () => {
    const { config, settings } = resolveWith(all);
    expect(config).toMatchObject({ port: 1, host: "::1", maxWorkers: 9, asyncMaxQueue: 16 });
    const origins = new Map(settings.map(({ name, origin }) => [name, describeOrigin(origin)]));
    expect(origins.get("port")).toBe("--port");
    expect(origins.get("host")).toBe("JOBTABLE_HOST");
    expect(origins.get("max_workers")).toBe("jobtable.config.json");
    expect(origins.get("async_max_queue")).toBe("default");
  });

  test.each([
    ["ENABLED", "false", "asyncEnabled", false],
    ["MAX_WORKERS", "7", "maxWorkers", 7],
    ["POLL_INTERVAL", "0.5", "pollIntervalMs", 500],
    ["JOB_TIMEOUT", "60", "jobTimeoutMs", 60_000],
    ["JOB_TTL", "10", "asyncJobTtlMs", 10_000],
  ] as const)("CLEVERAGENTS_ASYNC_%s goes on working", (name, raw, key, expected) => {
    expect(resolveWith({ env: { [`CLEVERAGENTS_ASYNC_${name}`]: raw } }).config[key]).toBe(
      expected,
    );
  });

  test("our own name wins over an alias", () => {
    const env = { CLEVERAGENTS_ASYNC_MAX_WORKERS: "7", JOBTABLE_ASYNC_MAX_WORKERS: "8" };
    expect(resolveWith({ env }).config.maxWorkers).toBe(8);
  });

  test("an empty variable counts as not set", () => {
    expect(resolveWith({ env: { JOBTABLE_PORT: "" } }).config.port).toBe(8_202);
  });
});

describe("values", () => {
  test.each([
    ["async_timeout", "300", 300],
    ["async_timeout", "5m", 300_000],
    ["async_job_ttl", "60", 60_000],
    ["poll_interval", "0.25", 250],
    ["poll_interval", "250ms", 250],
    ["async_max_queue", "-1", -1],
    ["async_enabled", "off", false],
    ["async_enabled", "TRUE", true],
    ["request_size_limit", "1mb", 1_048_576],
    ["request_size_limit", "2048", 2_048],
    ["log_level", "debug", "debug"],
    ["store", "memory", "memory"],
  ] as const)("%s: %s", (name, raw, expected) => {
    expect(value(name, raw)).toBe(expected);
  });

  test.each([
    ["port", "70000", "a whole number from 0 to 65535"],
    ["port", "1.5", "a whole number from 0 to 65535"],
    ["max_workers", "0", "a whole number from 1 to 1024"],
    ["max_workers", "four", "a whole number from 1 to 1024"],
    [
      "poll_interval",
      "0",
      'a duration from 0.01 s to 3600 s: a number in s, or one with a unit such as "5m"',
    ],
    ["async_enabled", "maybe", "true or false"],
    [
      "request_size_limit",
      "1 potato",
      'a size from 1 KiB to 1 GiB: bytes, or a number with a unit such as "16mb"',
    ],
    ["log_level", "loud", "one of debug, info, warn, error, silent"],
    ["store", "mysql://x", "memory, sqlite:PATH or postgres://USER@HOST/DATABASE"],
  ] as const)("refuses %s = %s", (name, raw, expected) => {
    const flag = `--${name.replaceAll("_", "-")}`;
    expect(refusal({ flags: { [name]: raw } })).toBe(
      `setting ${name} (${flag}): ${JSON.stringify(raw)} is not ${expected}`,
    );
  });

  test("a file's values have types of their own", () => {
    const values = { async_enabled: false, port: 0, poll_interval: 2, request_size_limit: "1kb" };
    expect(resolveWith({ file: file(values) }).config).toMatchObject({
      asyncEnabled: false,
      port: 0,
      pollIntervalMs: 2_000,
      requestSizeLimitBytes: 1_024,
    });
    expect(refusal({ file: file({ port: null }) })).toBe(
      "setting port (jobtable.config.json): null is not a whole number from 0 to 65535",
    );
  });

  test("whatever is given, an integer stays within its bounds", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.double(), fc.jsonValue()), (raw) => {
        const reading = readValue(settingRow("port"), raw);
        if (reading.kind === "wrong") return;
        expect(reading.value).toBeGreaterThanOrEqual(0);
        expect(reading.value).toBeLessThanOrEqual(65_535);
      }),
    );
  });

  test("sizes are binary multiples", () => {
    expect(["0", "1b", "1kb", "1 KiB", "1.5mb", "2gb"].map(parseSize)).toEqual([
      0, 1, 1_024, 1_024, 1_572_864, 2_147_483_648,
    ]);
    expect(["", "mb", "-1", "1tb", "1e3"].map(parseSize)).toEqual(Array(5).fill(undefined));
  });
});

describe("names that nothing knows", () => {
  test("in the file", () => {
    expect(refusal({ file: file({ max_worker: 4 }) })).toBe(
      "config file jobtable.config.json: unknown setting max_worker; did you mean max_workers?",
    );
  });

  test("in the environment", () => {
    expect(refusal({ env: { JOBTABLE_AUTH_TOKN: "x" } })).toBe(
      "environment: unknown variable JOBTABLE_AUTH_TOKN; did you mean JOBTABLE_AUTH_TOKEN?",
    );
    expect(refusal({ env: { JOBTABLE_ZZZZZZZZZZZZ: "x" } })).toBe(
      "environment: unknown variable JOBTABLE_ZZZZZZZZZZZZ; jobtable config lists all",
    );
  });

  test.each(["JOBTABLE_TEST_POSTGRES_URL", "JOBTABLE_REPO", "JOBTABLE_PORT_8202_TCP_ADDR", "PATH"])(
    "%s is none of our business",
    (variable) => {
      expect(resolveWith({ env: { [variable]: "x" } }).config).toEqual(resolveWith().config);
    },
  );

  test("a Kubernetes service called jobtable does not set our port", () => {
    const env = { JOBTABLE_PORT: "tcp://10.96.3.4:8202" };
    expect(resolveWith({ env }).config).toEqual(resolveWith().config);
    expect(refusal({ env: { JOBTABLE_PORT: "http" } })).toContain("setting port (JOBTABLE_PORT)");
  });

  test("the nearest is near", () => {
    expect(nearest("prot", ["port", "host"])).toBe("port");
    expect(nearest("x", ["port", "host"])).toBeUndefined();
  });
});

describe("secrets", () => {
  test("are never shown, neither as a value nor in a refusal", () => {
    expect(formatValue(settingRow("auth_token"), "s3cret")).toBe("***");
    expect(refusal({ env: { JOBTABLE_AUTH_TOKEN: "s3cret\nx" } })).not.toContain("s3cret");
    expect(refusal({ flags: { store: "postgre://u:s3cret@h/db" } })).not.toContain("s3cret");
  });

  test("a store's password is masked", () => {
    expect(maskStore("postgres://u:s3cret@h:5432/db?schema=a")).toBe(
      "postgres://u:***@h:5432/db?schema=a",
    );
    expect(maskStore("postgresql://h/db?password=s3cret&x=1")).toBe(
      "postgresql://h/db?password=***&x=1",
    );
    expect(maskStore("sqlite:a:b@c.db")).toBe("sqlite:a:b@c.db");
  });
});
