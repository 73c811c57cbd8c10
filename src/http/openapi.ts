/**
 * The OpenAPI 3.1 document: the routes' own schemas, and for each registered task its input as a
 * component and `POST /tasks/{name}` as a path with that input for its body.
 */
import type { FastifyDynamicSwaggerOptions } from "@fastify/swagger";
import type { TaskRegistry } from "../task/registry.js";
import { MAX_REQUEST_ID_CHARS } from "../job/limits.js";

type Json = Record<string, unknown>;
/** What the swagger plug-in hands over, as far as it is read or written here. */
interface Document {
  components?: { schemas?: Json };
  paths?: Record<string, Partial<Record<"get" | "post" | "delete", Json>>>;
}

const TEMPLATE_PATH = "/tasks/{task}";
const COMPONENTS = "#/components/schemas/";

export function swaggerOptions(
  tasks: TaskRegistry,
  options: { readonly defaultTask: string | null; readonly withAuth: boolean },
): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Jobtable",
        description: "Bounded, durable, cancellable jobs, and the same tasks run synchronously",
        version: "1.0.0",
      },
      ...(options.withAuth
        ? { components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } } }
        : {}),
    },
    convertConstToEnum: false,
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) =>
        typeof json["$id"] === "string" ? json["$id"] : `schema-${String(index)}`,
    },
    transformObject(documented) {
      if (!("openapiObject" in documented)) return documented.swaggerObject;
      const document = documented.openapiObject as Document;
      addTasks(document, tasks, options.defaultTask);
      if (options.withAuth) askForToken(document);
      return documented.openapiObject;
    },
  };
}

function addTasks(document: Document, tasks: TaskRegistry, defaultTask: string | null): void {
  const schemas = ((document.components ??= {}).schemas ??= {});
  const paths = (document.paths ??= {});
  const template = paths[TEMPLATE_PATH]?.post;
  for (const name of tasks.names) {
    const task = tasks.get(name);
    if (task === undefined) continue;
    const component = `input.${name}`;
    schemas[component] = embedded(tasks.inputJsonSchema(task), `${COMPONENTS}${component}`);
    const post = {
      ...template,
      parameters: [],
      operationId: `run.${name}`,
      summary: `Run ${name} now`,
      ...(task.description === null ? {} : { description: task.description }),
      requestBody: jsonBody(withRequestId(component)),
    };
    paths[`/tasks/${name}`] = { post };
    if (paths["/"]?.post !== undefined)
      paths["/"] = { post: { ...paths["/"].post, requestBody: post.requestBody } };
  }
  const submit = paths["/jobs"]?.post;
  if (submit !== undefined)
    submit["requestBody"] = jsonBody({
      anyOf: [
        ...tasks.names.map((name) => ({
          allOf: [
            { $ref: `${COMPONENTS}JobRequest` },
            {
              type: "object",
              properties: { task: { const: name }, input: { $ref: `${COMPONENTS}input.${name}` } },
            },
          ],
        })),
        ...(defaultTask === null ? [] : [withRequestId(`input.${defaultTask}`)]),
      ],
    });
}

function askForToken({ paths = {} }: Document): void {
  for (const operations of Object.values(paths))
    for (const operation of Object.values(operations)) {
      const isPublic = (operation["tags"] as string[] | undefined)?.includes("service") ?? false;
      if (!isPublic) operation["security"] = [{ bearer: [] }];
    }
}

/** A task's bare input with the `req_id` that may stand beside it. */
function withRequestId(component: string): Json {
  return {
    allOf: [
      { $ref: `${COMPONENTS}${component}` },
      {
        type: "object",
        properties: { req_id: { type: "string", maxLength: MAX_REQUEST_ID_CHARS } },
      },
    ],
  };
}

function jsonBody(schema: Json): Json {
  return { required: true, content: { "application/json": { schema } } };
}

/** Where a schema holds plain values, whatever they look like. */
const VALUE_KEYS = new Set(["const", "enum", "default", "example", "examples"]);

/** A self-contained JSON Schema, moved to `base`: references within it follow, its own `$id` stays behind. */
function embedded(schema: Json, base: string): Json {
  const result = moved(schema, base) as Json;
  delete result["$schema"];
  return result;
}

function moved(part: unknown, base: string): unknown {
  if (Array.isArray(part)) return part.map((item) => moved(item, base));
  if (typeof part !== "object" || part === null) return part;
  const result: Json = {};
  for (const [key, value] of Object.entries(part)) {
    if (key === "$id" && typeof value === "string") continue;
    if (key === "$ref" && typeof value === "string" && value.startsWith("#"))
      result[key] = base + value.slice(1);
    else result[key] = VALUE_KEYS.has(key) ? value : moved(value, base);
  }
  return result;
}
