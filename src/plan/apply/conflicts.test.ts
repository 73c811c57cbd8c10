import { expect, test } from "vitest";
import { conflictsIn } from "./conflicts.js";

test("what git says of each file, with the line where it knows one", () => {
  const said = [
    "error: patch failed: a.txt:12",
    "error: a.txt: patch does not apply",
    "error: gone: No such file or directory",
    "error: new: already exists in working directory",
    "error: affected file 'l/x' is beyond a symbolic link",
    "error: the patch applies to 'bin' (0123abc), which does not match the current contents.",
    "error: binary patch does not apply to 'bin'",
    "error: odd: something that no version said before",
    "error: stranger: patch does not apply",
  ].join("\n");
  const paths = new Set(["a.txt", "gone", "new", "l/x", "bin", "odd"]);
  expect(conflictsIn(`${said}\n`, paths)).toEqual([
    { file: "a.txt", line: 12, reason: "the lines that the patch changes are not there" },
    { file: "gone", line: null, reason: "is not there" },
    { file: "new", line: null, reason: "exists already" },
    { file: "l/x", line: null, reason: "lies behind a symbolic link" },
    { file: "bin", line: null, reason: "has other content" },
    { file: "odd", line: null, reason: "something that no version said before" },
  ]);
});

test("names may hold anything that looks like git's words, and no file has line 0", () => {
  const name = "a: patch does not apply\nb:3";
  const said = `error: patch failed: ${name}:0\nerror: ${name}: patch does not apply\n`;
  expect(conflictsIn(said, new Set([name]))).toEqual([
    { file: name, line: null, reason: "the lines that the patch changes are not there" },
  ]);
});

test("of what is about no file of the patch nothing is said", () => {
  expect(conflictsIn("error: corrupt patch at line 3\n", new Set(["a"]))).toEqual([]);
});
