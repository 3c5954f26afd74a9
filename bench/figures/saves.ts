/** Compares the time from a save to the first answer of its code with esbuild's own build. */
import { join } from 'node:path'
import { build } from 'esbuild'
import { type Figure, median, type Side } from '../figure.ts'
import { DevelopmentProcess } from '../saves/development-process.ts'

/** A save may take three times as long as the bundle alone. */
const RATIO_MIN = 1 / 3
/** Saves before the first measured one, in which new code is compiled. */
const WARM_UP = 5
const SAVES_PER_ROUND = 10
/** Milliseconds between saves, in which the runner of the next Release starts. */
const PAUSE_MILLIS = 400

export const SAVES: readonly Figure[] = [10, 100, 1_000].map((functions) => ({
  name: `save to answer, ${functions} Functions`,
  baseline: 'a build by esbuild',
  ratioMin: RATIO_MIN,
  documents: 'sqlite',
  measure: async (_, { rounds }) => {
    const development = new DevelopmentProcess(functions)
    try {
      const started = await development.start()
      const [saves, builds]: [number[], number[]] = [[], []]
      for (let i = 0; i < WARM_UP; i++) await development.save()
      for (let i = 0; i < rounds * SAVES_PER_ROUND; i++) {
        builds.push(await buildMillis(development.workspace, functions))
        await Bun.sleep(PAUSE_MILLIS)
        saves.push(await development.save())
      }
      const candidate = sideOf(saves, ` (start ${started.toFixed(0)} ms)`)
      const ratio = median(builds) / median(saves)
      return { ratio, candidate, baseline: sideOf(builds), failure: null }
    } finally {
      await development.stop()
    }
  },
}))

function sideOf(millis: readonly number[], note = ''): Side {
  const sorted = millis.toSorted((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, (sorted.length * share) | 0)]! * 1000
  const value = `${median(millis).toFixed(0)} ms${note}`
  return { value, p50Micros: at(0.5), p99Micros: at(0.99) }
}

/** Bundles all files of Functions, as a Workspace is. */
async function buildMillis(workspace: string, functions: number): Promise<number> {
  const files = Array.from({ length: functions / 10 }, (_, i) => `functions/f${i}.ts`)
  const contents = [
    `import schema from './schema.ts'`,
    ...files.map((file, i) => `import * as m${i} from './${file}'`),
    `globalThis.defined = [schema, ${files.map((_, i) => `m${i}`).join(', ')}]`,
  ].join('\n')
  const startedAt = performance.now()
  await build({
    stdin: { contents, resolveDir: workspace, sourcefile: join(workspace, 'entry.ts') },
    bundle: true,
    write: false,
    format: 'iife',
    sourcemap: 'external',
    external: ['svc'],
    outfile: 'bundle.js',
    minifyWhitespace: true,
    logLevel: 'silent',
  })
  return performance.now() - startedAt
}
