/** What a benchmark can't do without is not on this machine. Its row says "not run: needs ..."; the others go on. */
export class Missing extends Error {
  /** @param needs what to install and how, in one line. */
  constructor(readonly needs: string) {
    super(`needs ${needs}`);
    this.name = "Missing";
  }
}
