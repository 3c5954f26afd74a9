/** Returns the paths of the tests that do more in the long run, relative to `root`. */
export function longTests(root: string): string[]
