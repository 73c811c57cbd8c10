/**
 * Where symbolic links lead. Through one that leads out of the working tree a step could write to the
 * user's files, so such links are refused. A link is followed as the system would: a `..` behind
 * another link counts from where that one leads.
 */

/** What the system itself takes for a loop (MAXSYMLINKS, 40 on Linux). */
const MAX_LINKS = 40;

/** The target of the link at a path relative to the root; null where there is none. */
export type TargetOf = (path: string) => string | null | Promise<string | null>;

/** @param link path of the link, relative to the root, with `/` between. */
export async function leavesRoot(
  link: string,
  target: string,
  targetOf: TargetOf,
): Promise<boolean> {
  const at = link.split("/").slice(0, -1);
  let left = target.split("/");
  if (target.startsWith("/")) return true;
  for (let links = 0; links < MAX_LINKS;) {
    const [name, ...rest] = left;
    if (name === undefined) return false;
    left = rest;
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (at.pop() === undefined) return true;
      continue;
    }
    const next = await targetOf([...at, name].join("/"));
    if (next === null) at.push(name);
    else if (next.startsWith("/")) return true;
    else {
      left = [...next.split("/"), ...left];
      links += 1;
    }
  }
  // A loop leads nowhere.
  return false;
}
