/** Whatever a workspace holds and whatever steps make of it: apply gives the same, and roll-back undoes it. */
import { chmodSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { mkdirSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { applied, patchOf, workspaceAt } from "../../../test/plan/applying.js";
import { gitView, Scratch, snapshot } from "../../../test/plan/scratch.js";

type Leaf =
  | { readonly kind: "file"; readonly content: string; readonly isProgram: boolean }
  | { readonly kind: "link"; readonly target: string };
type Tree = ReadonlyMap<string, Leaf>;

/** Few names, so that files, links and folders take each other's place. */
const name = fc.constantFrom("a", "b", "l", "-c", "d e", 'q"\n', "ü");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
const line = fc.constantFrom("one", "two", "three", "", "\t4 ", "\0", "\r", "ü");
const content = fc
  .tuple(fc.array(line, { maxLength: 12 }), fc.boolean())
  .map(([lines, isEnded]) => lines.join("\n") + (isEnded ? "\n" : ""));
const file = fc.record({ kind: fc.constant("file" as const), content, isProgram: fc.boolean() });
/** Never through another link: git itself stumbles over a loop that a folder takes the place of. */
const link = fc.record({
  kind: fc.constant("link" as const),
  target: fc.constantFrom("a", "./b", "a/b", "d e"),
});
const entry: fc.Arbitrary<readonly [string, Leaf]> = path.chain((at) =>
  fc.tuple(fc.constant(at), at.endsWith("l") ? fc.oneof(link, file) : file),
);
const tree: fc.Arbitrary<Tree> = fc
  .array(entry, { maxLength: 8 })
  .map((entries) => new Map(withoutClashes(entries)));
/** A tree, and one that came from it by edits. */
const edited: fc.Arbitrary<readonly [Tree, Tree]> = fc
  .tuple(tree, tree, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }))
  .map(([from, to, keeps]) => {
    const kept = [...from].filter((_, index) => keeps[index] === true);
    return [from, new Map(withoutClashes([...to, ...kept]))];
  });

/** No file may stand where another one needs a folder. The first one stays. */
function withoutClashes(entries: readonly (readonly [string, Leaf])[]): [string, Leaf][] {
  const taken: [string, Leaf][] = [];
  for (const [at, it] of entries) {
    const clash = ([other]: readonly [string, Leaf]): boolean =>
      `${other}/`.startsWith(`${at}/`) || `${at}/`.startsWith(`${other}/`);
    if (!taken.some(clash)) taken.push([at, it]);
  }
  return taken;
}

function lay(scratch: Scratch, dir: string, files: Tree): void {
  for (const entry of readdirSync(dir))
    if (entry !== ".git") rmSync(join(dir, entry), { recursive: true });
  for (const [at, it] of files) {
    const full = join(dir, at);
    mkdirSync(dirname(full), { recursive: true });
    if (it.kind === "link") symlinkSync(it.target, full);
    else {
      scratch.write(full, it.content);
      chmodSync(full, it.isProgram ? 0o755 : 0o644);
    }
  }
}

test("a patch makes of any workspace exactly what the sandbox was, and roll-back the old one", async () => {
  const scratch = new Scratch();
  try {
    const root = scratch.repository("r", {});
    const workspace = await workspaceAt(scratch, root);
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(tree, edited, async (committed, [from, to]) => {
        runs += 1;
        lay(scratch, root, committed);
        scratch.commit(root);
        lay(scratch, root, from);
        const { patch, seen } = await patchOf(
          scratch,
          root,
          (dir) => lay(scratch, dir, to),
          gitView,
        );
        const before = snapshot(root);
        const there = await applied(workspace, patch, `a${String(runs)}`);
        expect(gitView(root)).toEqual(seen);
        expect(await there.rollBack()).toEqual([]);
        expect(snapshot(root)).toEqual(before);
        await (await applied(workspace, patch, `b${String(runs)}`)).commit();
        expect(gitView(root)).toEqual(seen);
      }),
      { numRuns: 12 },
    );
    expect(runs).toBe(12);
  } finally {
    scratch.remove();
  }
}, 120_000);
