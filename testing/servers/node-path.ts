import { delimiter } from 'node:path'

/** The PATH of this process without the runtime of the tests, which is called `node` there. */
export const NODE_PATH = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('bun-node-'))
  .join(delimiter)
