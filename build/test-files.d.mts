/** Returns the paths of the files of `npm test`, relative to `root`: those that are not slow. */
export function quickTests(root: string): string[]

/** Returns the paths of the tests that do more in the long run, relative to `root`. */
export function longTests(root: string): string[]
