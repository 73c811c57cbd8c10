import type { FastifyInstance } from "fastify";
import { afterEach, describe, expect, test } from "vitest";
import { appOn, registry } from "../../test/http/scripted-engine.js";

type Json = Record<string, unknown>;
interface Operation {
  operationId?: string;
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: { content: Record<string, { schema: Json }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: Json }> }>;
}
interface Document {
  openapi: string;
  info: Json;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json>; securitySchemes?: Json };
}

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

const INPUTS = {
  ocr: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "https://example.com/ocr",
    type: "object",
    properties: { page: { $ref: "#/$defs/Page" }, self: { $ref: "#" } },
    required: ["page"],
    additionalProperties: false,
    default: { $ref: "#/not/a/reference" },
    $defs: { Page: { type: "object", properties: { next: { $ref: "#/$defs/Page" } } } },
  },
  "a.b-c": { type: "object", properties: { n: { type: "number" } } },
};

async function documentOf(
  names: readonly string[],
  settings: Parameters<typeof appOn>[1] = {},
  options: Parameters<typeof appOn>[2] = {},
): Promise<Document> {
  const app = appOn({ tasks: registry(names, INPUTS) }, settings, options);
  apps.push(app);
  return (await app.inject("/openapi.json")).json<Document>();
}

/** Every `$ref` in schema positions, wherever it stands. */
function refs(part: unknown): string[] {
  if (Array.isArray(part)) return part.flatMap(refs);
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) => {
    if (key === "default") return [];
    return key === "$ref" ? [String(value)] : refs(value);
  });
}

function resolve(document: Document, ref: string): unknown {
  return ref
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((part, key) => (part as Json | undefined)?.[key], document);
}

describe("the OpenAPI document", () => {
  test("is 3.1, and every reference in it leads somewhere", async () => {
    const document = await documentOf(["ocr", "a.b-c"], { defaultTask: "ocr" });
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info).toMatchObject({
      title: "Jobtable",
      version: expect.any(String) as unknown,
    });
    const found = refs(document);
    expect(found.length).toBeGreaterThan(40);
    for (const ref of found) {
      expect(ref).toMatch(/^#\/components\/schemas\//);
      expect(resolve(document, ref), ref).toBeTypeOf("object");
    }
    for (const name of Object.keys(document.components.schemas))
      expect(name).toMatch(/^[A-Za-z0-9._-]+$/);
  });

  test("describes every call once, with all its replies", async () => {
    const { paths } = await documentOf(["ocr", "a.b-c"]);
    const calls = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
    );
    expect(calls.map(({ path, method }) => `${method} ${path}`).sort()).toEqual([
      "delete /jobs/{id}",
      "get /diagnostics",
      "get /healthz",
      "get /jobs",
      "get /jobs/{id}",
      "get /jobs/{id}/result",
      "get /jobs/{id}/wait",
      "get /metrics",
      "get /openapi.json",
      "get /ready",
      "post /jobs",
      "post /jobs/{id}/retry",
      "post /tasks/a.b-c",
      "post /tasks/ocr",
      "post /tasks/{task}",
    ]);
    const ids = calls.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(calls.length);
    for (const { path, operation } of calls) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (operation.parameters ?? []).filter((one) => one.in === "path");
      expect(declared.map(({ name }) => name)).toEqual(inPath);
      for (const one of declared) expect(one.required).toBe(true);
      for (const [status, reply] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/);
        expect(reply.description).not.toBe("");
        expect(Object.values(reply.content ?? {})[0]?.schema).toBeTypeOf("object");
      }
    }
    const statuses = (path: string, method: string): string[] =>
      Object.keys(paths[path]?.[method]?.responses ?? {});
    expect(statuses("/jobs", "post")).toEqual(
      expect.arrayContaining(["202", "400", "401", "413", "415", "422", "429", "503"]),
    );
    expect(statuses("/tasks/ocr", "post")).toEqual(
      expect.arrayContaining([
        "200",
        "400",
        "401",
        "413",
        "415",
        "422",
        "429",
        "500",
        "503",
        "504",
      ]),
    );
    expect(statuses("/jobs/{id}", "delete")).toEqual(
      expect.arrayContaining(["200", "202", "404", "409"]),
    );
    expect(paths["/jobs"]?.["post"]?.responses["202"]).toHaveProperty("headers.Location");
  });

  test("has the plans where they are served, and only there", async () => {
    const document = await documentOf(["ocr"], { authToken: "t" }, { plans: () => null });
    const calls = Object.entries(document.paths)
      .filter(([path]) => path.startsWith("/plans"))
      .flatMap(([path, operations]) => Object.keys(operations).map((verb) => `${verb} ${path}`));
    expect(calls.sort()).toEqual([
      "get /plans",
      "get /plans/{id}",
      "get /plans/{id}/diff",
      "post /plans/{id}/apply",
      "post /plans/{id}/cancel",
      "post /plans/{id}/execute",
    ]);
    for (const ref of refs(document)) expect(resolve(document, ref), ref).toBeTypeOf("object");
    expect(document.paths["/plans/{id}/execute"]?.["post"]).toMatchObject({
      security: [{ bearer: [] }],
    });
  });

  test("carries each task's input, moved to where it now stands", async () => {
    const { components, paths } = await documentOf(["ocr", "a.b-c"]);
    expect(components.schemas["input.ocr"]).toEqual({
      type: "object",
      properties: {
        page: { $ref: "#/components/schemas/input.ocr/$defs/Page" },
        self: { $ref: "#/components/schemas/input.ocr" },
      },
      required: ["page"],
      additionalProperties: false,
      default: { $ref: "#/not/a/reference" },
      $defs: {
        Page: {
          type: "object",
          properties: { next: { $ref: "#/components/schemas/input.ocr/$defs/Page" } },
        },
      },
    });
    expect(JSON.stringify(paths["/tasks/a.b-c"]?.["post"]?.requestBody)).toContain(
      "#/components/schemas/input.a.b-c",
    );
  });

  test("a server of one task has it at the root too", async () => {
    const { paths } = await documentOf(["ocr"]);
    expect(JSON.stringify(paths["/"]?.["post"]?.requestBody)).toContain("input.ocr");
  });

  test("leaves out what is turned off, and says when a token is asked for", async () => {
    const off = await documentOf(["ocr"], { asyncEnabled: false });
    expect(Object.keys(off.paths).filter((path) => path.startsWith("/jobs"))).toEqual([]);
    expect(off.components.securitySchemes).toBeUndefined();
    const guarded = await documentOf(["ocr"], { authToken: "t" });
    expect(guarded.components.securitySchemes).toEqual({
      bearer: { type: "http", scheme: "bearer" },
    });
    expect(guarded.paths["/jobs"]?.["post"]).toMatchObject({ security: [{ bearer: [] }] });
    expect(guarded.paths["/healthz"]?.["get"]).not.toHaveProperty("security");
  });
});
