/**
 * Compiles a server that writes no log, as the baseline of what logging costs. Only the records of
 * its start remain, which the bench waits for.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'esbuild'
import { bundle } from '../../build/bundle.ts'
import { compile } from '../../build/compile.ts'
import { assert } from '../../src/errors/assert.ts'

const CREATE_LOG = 'export function createLog('
const WITHOUT_LOG = `
export function createLog(options: LogOptions): Logger {
  const log = createWrittenLog(options)
  const none = (): void => {}
  const info: Logger['info'] = (event, fields) => {
    if (event.startsWith('server.')) log.info(event, fields)
  }
  return { debug: none, info, warn: none, error: none, lines: none, with: () => createLog(options) }
}
`

const withoutLog: Plugin = {
  name: 'without-log',
  setup(build) {
    build.onLoad({ filter: /src\/telemetry\/log\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      assert(text.includes(CREATE_LOG), `${path} has no ${CREATE_LOG}`)
      const renamed = text.replace(CREATE_LOG, 'function createWrittenLog(')
      return { contents: renamed + WITHOUT_LOG, loader: 'ts' }
    })
  },
}

/** Returns the path of the executable, in this directory. */
export async function serverWithoutLog(directory: string): Promise<string> {
  const module = join(directory, 'without-log.js')
  await bundle({ outfile: module, plugins: [withoutLog] })
  return compile(process.execPath, directory, { module, suffix: '' })
}
