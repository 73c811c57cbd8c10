/**
 * Values of a YAML document, and where each of them stands. Keys that are no text or stand twice,
 * merge keys, `__proto__`, numbers that would change, and aliases that have no end or repeat too much
 * are findings; the value then lacks them.
 */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Alias,
  type Node,
  type Scalar,
  type YAMLMap,
} from "yaml";
import { OPENING } from "../steps/expression.js";
import type { Findings, Place, PlanPath, PlanSource, Spot } from "./findings.js";

/** Aliases can make a document deeper than its text. */
const MAX_DEPTH = 500;
/** Characters that aliases may repeat in all; a value counts as some. */
const MAX_ALIASED_CHARS = 256 * 1024;
const VALUE_CHARS = 8;

interface Found {
  readonly node: Node | null;
  /** What its last part stands under; null in a list. */
  readonly key: Node | null;
}

export class YamlSource implements PlanSource {
  readonly name: string;
  readonly #text: string;
  readonly #placeOf: (offset: number) => Place;
  #root: Node | null = null;
  readonly #anchors = new Map<string, Node>();
  readonly #targets = new Map<Alias, Node>();
  /** The nodes around the one that is being read: an alias to one of them has no end. */
  readonly #open = new Set<Node>();
  /** How many aliases are around it. */
  #aliases = 0;
  #aliasedChars = 0;

  constructor(name: string, text: string, placeOf: (offset: number) => Place) {
    this.name = name;
    this.#text = text;
    this.#placeOf = placeOf;
  }

  /**
   * @param root null for an empty document, whose value is null.
   * @throws InvalidPlan where aliases repeat too much: what follows is not read.
   */
  read(root: Node | null, findings: Findings): unknown {
    this.#root = root;
    return this.#value(root, [], findings);
  }

  place(path: PlanPath, spot: Spot): Place {
    const { node, key } = this.#find(path);
    const at = (spot === "key" ? key : null) ?? node;
    const start = at?.range?.[0] ?? key?.range?.[1] ?? 0;
    const end = at?.range?.[1] ?? start;
    return this.#placeOf(typeof spot === "number" ? this.#opening(start, end, spot) : start);
  }

  written(path: PlanPath): string | undefined {
    const { node } = this.#find(path);
    return isScalar(node) ? node.source : undefined;
  }

  /** Where that `${{` stands. One that is written with escapes isn't found: then the text's start. */
  #opening(start: number, end: number, place: number): number {
    let at = start - 1;
    for (let count = 0; count <= place; count += 1) {
      at = this.#text.indexOf(OPENING, at + 1);
      if (at < 0 || at >= end) return start;
    }
    return at;
  }

  /** As far as the path leads. */
  #find(path: PlanPath): Found {
    let found: Found = { node: this.#follow(this.#root), key: null };
    for (const step of path) {
      const next = this.#child(found.node, step);
      if (next === null) break;
      found = { node: this.#follow(next.node), key: next.key };
    }
    return found;
  }

  #child(node: Node | null, step: string | number): Found | null {
    if (isSeq<Node>(node) && typeof step === "number") {
      const item = node.items[step];
      return item === undefined ? null : { node: item, key: null };
    }
    if (!isMap<Node, Node | null>(node)) return null;
    const pair = node.items.find(({ key }) => isScalar(key) && key.value === step);
    return pair === undefined ? null : { node: pair.value, key: pair.key };
  }

  #follow(node: Node | null): Node | null {
    return isAlias(node) ? (this.#targets.get(node) ?? node) : node;
  }

  #value(node: Node | null, path: PlanPath, findings: Findings): unknown {
    if (node === null || this.#aliasedChars > MAX_ALIASED_CHARS) return null;
    if (isAlias(node)) return this.#aliasValue(node, path, findings);
    if (isScalar(node)) {
      this.#anchor(node);
      return scalarValue(node, path, findings);
    }
    if (path.length >= MAX_DEPTH) {
      findings.add(path, "this is nested too deep for a plan");
      return null;
    }
    this.#anchor(node);
    this.#open.add(node);
    let value: unknown = null;
    if (isMap<Node, Node | null>(node)) value = this.#mapValue(node, path, findings);
    else if (isSeq<Node>(node))
      value = node.items.map((item, index) => this.#value(item, [...path, index], findings));
    this.#open.delete(node);
    return value;
  }

  #anchor(node: Scalar | Exclude<Node, Alias>): void {
    if (node.anchor !== undefined && this.#aliases === 0) this.#anchors.set(node.anchor, node);
    if (this.#aliases === 0) return;
    this.#aliasedChars += VALUE_CHARS;
    if (isScalar(node) && typeof node.value === "string") this.#aliasedChars += node.value.length;
  }

  #mapValue(map: YAMLMap<Node, Node | null>, path: PlanPath, findings: Findings): object {
    const values = new Map<string, unknown>();
    for (const { key, value } of map.items) {
      const problem = keyProblem(key, values);
      if (problem !== null) findings.addAt(this.#placeOf(key.range?.[0] ?? 0), problem);
      else if (isScalar<string>(key))
        values.set(key.value, this.#value(value, [...path, key.value], findings));
    }
    return Object.fromEntries(values);
  }

  #aliasValue(alias: Alias, path: PlanPath, findings: Findings): unknown {
    const name = alias.source;
    const at = this.#placeOf(alias.range?.[0] ?? 0);
    const target = this.#targets.get(alias) ?? this.#anchors.get(name);
    if (target === undefined) findings.addAt(at, `there is no &${name} before *${name}`);
    else if (this.#open.has(target)) findings.addAt(at, `*${name} stands within &${name} itself`);
    else {
      this.#targets.set(alias, target);
      this.#aliases += 1;
      const value = this.#value(target, path, findings);
      this.#aliases -= 1;
      if (this.#aliasedChars <= MAX_ALIASED_CHARS || this.#aliases > 0) return value;
      findings.addAt(at, "aliases repeat too much here; put data into a file of its own");
      findings.throwIfAny();
    }
    return null;
  }
}

function keyProblem(key: Node, others: ReadonlyMap<string, unknown>): string | null {
  if (!isScalar(key) || typeof key.value !== "string") return "a key must be text: quote it";
  if (key.value === "<<" && key.type === "PLAIN")
    return "merge keys (<<) are not part of YAML 1.2: write out what it stands for";
  if (key.value === "__proto__") return "__proto__ can't be a key";
  return others.has(key.value) ? `the key ${JSON.stringify(key.value)} stands twice` : null;
}

/** Texts, booleans, null, and the numbers that JSON holds without changing them. */
function scalarValue(scalar: Scalar, path: PlanPath, findings: Findings): unknown {
  const { value, source = "" } = scalar;
  if (typeof value !== "number") return value;
  if (!isExact(value, source))
    findings.add(path, `${source} is no number that can be kept as it is: quote it`);
  return value;
}

/** A fraction is as near as it gets; a whole number keeps its digits. */
function isExact(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return false;
  if (!/^[-+]?[0-9]+$|^0[ox]/.test(source)) return true;
  const digits = source.replace("+", "");
  return BigInt(digits) === BigInt(value) || String(value) === digits;
}
