import './build/bun-channel.ts'
import { relative } from 'node:path'
import { defaultExclude, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** `npm run test:long` adds what takes minutes. */
const long = process.env.SVC_TEST_LONG === '1'

/**
 * Folders whose test files share a process and the modules in it, since most of the time of a short
 * file is the start of a process that loads the product. Their helpers keep no state of one file.
 */
const SHARED = [
  'app-client',
  'backups',
  'client',
  'console',
  'database',
  'dev',
  'documents',
  'engine',
  'http',
  'identity',
  'product',
  'sdk',
  'server',
  'storage',
  'system',
  'telemetry',
  'test-kit',
  'value',
  'wire',
].map((folder) => `src/${folder}/**/*.test.ts`)

/**
 * Starts the files of e2e first: they wait for programs most of the time, and the end of a run would
 * wait for one of them alone. Files that share a process are last, since they use the CPU all the
 * time, and a process is kept from one file to the next.
 */
class WaitingTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId, project }: TestSpecification) => {
      if (relative(import.meta.dirname, moduleId).startsWith('e2e')) return 0
      return project.config.isolate ? 1 : 2
    }
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}

const common = {
  pool: 'forks',
  // The runtime reads TypeScript itself, which takes less time than a module server does.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // Only a hang takes this long, on a machine that runs other programs too.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 100_000 } },
} as const
const exclude = [...defaultExclude, ...(long ? [] : ['**/*.long.test.ts'])]

export default defineConfig({
  test: {
    ...common,
    tags: [{ name: 'slow', description: 'takes seconds, so that `npm test` leaves it out' }],
    globalSetup: ['testing/global-setup.ts'],
    // Two more than the cores of the smallest machine, since tests wait for processes.
    maxWorkers: 4,
    sequence: { sequencer: WaitingTestsFirst },
    projects: [
      {
        test: {
          ...common,
          name: 'own process',
          include: ['src', 'build', 'testing', 'bench', 'e2e'].map(
            (each) => `${each}/**/*.test.ts`,
          ),
          exclude: [...exclude, ...SHARED],
        },
      },
      { test: { ...common, name: 'shared process', include: SHARED, exclude, isolate: false } },
    ],
  },
})
