/** Files that tell of each change before it is made; what hears of it may hold it up for ever. */
import { systemFiles, type Files } from "../../src/plan/apply/files.js";

/** @param at where something changes, or comes to stand. */
export type Tap = (name: keyof Files, at: string, from: string) => void | Promise<void>;

export function tapped(tap: Tap): Files {
  const of =
    <A extends readonly unknown[], R>(
      name: keyof Files,
      act: (...args: A) => Promise<R>,
    ): ((...args: A) => Promise<R>) =>
    async (...args) => {
      const [first, second] = args.map(String);
      const goesOn = name === "copy" || name === "move" || name === "addName";
      await tap(name, (goesOn ? second : first) ?? "", first ?? "");
      return act(...args);
    };
  const files = systemFiles;
  return {
    ...files,
    copy: of("copy", files.copy),
    addName: of("addName", files.addName),
    write: of("write", files.write),
    makeLink: of("makeLink", files.makeLink),
    makeFolder: of("makeFolder", files.makeFolder),
    setMode: of("setMode", files.setMode),
    setTime: of("setTime", files.setTime),
    move: of("move", files.move),
    remove: of("remove", files.remove),
    removeFolder: of("removeFolder", files.removeFolder),
    removeTree: of("removeTree", files.removeTree),
    sync: of("sync", files.sync),
  };
}
