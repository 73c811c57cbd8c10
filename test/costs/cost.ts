/** What a guard says when it is passed: which cost it is, and where to look. */
export function cost(what: string, where: string): string {
  return `the cost changed: ${what}. Look at ${where}. What fell is written here as it is now; what rose needs a reason beside it`;
}
