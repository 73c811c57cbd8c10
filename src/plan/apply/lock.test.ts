import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deadOwner, isGone, owner } from "../../../test/plan/applying.js";
import { Scratch } from "../../../test/plan/scratch.js";
import type { ProcessIdentity } from "../../runtime/process-identity.js";
import { systemFiles } from "./files.js";
import { takeLock, type LockAttempt, type LockHolder } from "./lock.js";

let scratch: Scratch;
let home: string;
beforeEach(() => {
  scratch = new Scratch();
  home = scratch.path("jobtable");
});
afterEach(() => {
  scratch.remove();
});

function take(
  purpose: string,
  by = owner,
  isOver?: (holder: LockHolder) => Promise<boolean>,
): Promise<LockAttempt> {
  return takeLock(systemFiles, home, { owner: by, purpose }, { isGone, isOver });
}

const elsewhere: ProcessIdentity = { ...owner, host: "elsewhere" };

async function taken(attempt: Promise<LockAttempt>): Promise<() => Promise<void>> {
  const result = await attempt;
  if (result.kind === "busy") throw new Error(`held by ${result.holder.purpose}`);
  return () => result.lock.release();
}

describe("the lock of a workspace", () => {
  test("has one holder, who is named, until it is released", async () => {
    const release = await taken(take("a"));
    const folder = join(home, "lock/1");
    expect(await take("b")).toEqual({ kind: "busy", holder: { owner, purpose: "a" }, folder });
    await release();
    await release();
    const second = await taken(take("b"));
    expect(await take("c")).toMatchObject({ kind: "busy", holder: { purpose: "b" } });
    await second();
    expect(readdirSync(join(home, "lock"))).toEqual(["2"]);
  });

  test("of a dead process is taken over, of one on another host it is not", async () => {
    await taken(take("a", deadOwner()));
    await taken(take("b", elsewhere));
    expect(await take("c")).toMatchObject({ kind: "busy", holder: { purpose: "b" } });
  });

  test("whose holder nobody can see is taken over once its job is known to have ended", async () => {
    await taken(take("a", elsewhere));
    const over = new Set<string>();
    const isOver = ({ purpose }: LockHolder): Promise<boolean> =>
      Promise.resolve(over.has(purpose));
    expect(await take("b", owner, isOver)).toMatchObject({ kind: "busy" });
    over.add("a");
    await taken(take("b", owner, isOver));
    expect(await take("c", owner, isOver)).toMatchObject({
      kind: "busy",
      holder: { purpose: "b" },
    });
  });

  test("that was taken over lets its old holder change nothing more", async () => {
    const first = await take("a", elsewhere);
    if (first.kind === "busy") throw new Error("it is free");
    const { files } = first.lock;
    await files.write(scratch.path("x"), "1");
    const release = await taken(take("b", owner, () => Promise.resolve(true)));
    for (const change of [
      () => files.move(scratch.path("x"), scratch.path("y")),
      () => files.remove(scratch.path("x")),
      () => files.copy(scratch.path("x"), scratch.path("y")),
      () => files.write(scratch.path("y"), "1"),
      () => files.makeFolder(scratch.path("y")),
    ])
      await expect(change()).rejects.toMatchObject({
        code: "apply_failed",
        message: expect.stringContaining("taken over") as string,
      });
    expect(await files.read(scratch.path("x"))).toBe("1");
    // Nor does it take the lock from the new one.
    await first.lock.release();
    expect(await take("c")).toMatchObject({ kind: "busy", holder: { purpose: "b" } });
    await release();
  });

  test("that somebody removed by hand is free, and no more its holder's", async () => {
    const first = await take("a");
    if (first.kind === "busy") throw new Error("it is free");
    rmSync(join(home, "lock/1"), { recursive: true });
    await expect(first.lock.files.write(scratch.path("x"), "1")).rejects.toThrow("taken over");
    await (
      await taken(take("b"))
    )();
  });

  test("is taken over by exactly one, and held by one at a time, however many want it", async () => {
    await taken(take("a", deadOwner()));
    let holders = 0;
    let served = 0;
    const want = async (purpose: string): Promise<void> => {
      for (;;) {
        const attempt = await take(purpose);
        if (attempt.kind === "busy") continue;
        holders += 1;
        expect(holders).toBe(1);
        // Others look meanwhile.
        await systemFiles.list(join(home, "lock"));
        holders -= 1;
        served += 1;
        await attempt.lock.release();
        return;
      }
    };
    await Promise.all(Array.from({ length: 30 }, (_, index) => want(String(index))));
    expect(served).toBe(30);
    expect(readdirSync(join(home, "lock"))).toHaveLength(1);
  });

  test("does not mind what killed processes left of their attempts", async () => {
    mkdirSync(join(home, "lock/new-1"), { recursive: true });
    mkdirSync(join(home, "lock/7"));
    writeFileSync(join(home, "lock/7/released.json"), "");
    const release = await taken(take("a"));
    expect(readdirSync(join(home, "lock"))).toEqual(["8"]);
    await release();
  });

  test("that nobody can read is told of in one line", async () => {
    mkdirSync(join(home, "lock/3"), { recursive: true });
    writeFileSync(join(home, "lock/3/owner.json"), "{}");
    await expect(take("a")).rejects.toMatchObject({
      code: "apply_failed",
      message: expect.stringMatching(/^the lock ".*\/lock\/3" can't be read[^\n]*$/) as string,
    });
  });
});
