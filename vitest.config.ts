import './build/bun-channel.ts'
import { relative } from 'node:path'
import { defaultExclude, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** `npm run test:long` adds what takes minutes. */
const long = process.env.SVC_TEST_LONG === '1'

/**
 * Starts the files of e2e before all others: they run programs, so a short file may take longest,
 * and the end of a run would wait for it alone.
 */
class ProgramTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isProgram = ({ moduleId }: TestSpecification) =>
      relative(import.meta.dirname, moduleId).startsWith('e2e')
    return [...sorted.filter(isProgram), ...sorted.filter((file) => !isProgram(file))]
  }
}

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'build/**/*.test.ts', 'e2e/**/*.test.ts'],
    exclude: [...defaultExclude, ...(long ? [] : ['**/*.long.test.ts'])],
    globalSetup: ['build/testing/global-setup.ts'],
    pool: 'forks',
    // The runtime reads TypeScript itself, which takes less time than a module server does.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // One more than the cores of the smallest machine, since tests wait for processes.
    maxWorkers: 3,
    sequence: { sequencer: ProgramTestsFirst },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 10_000 } },
  },
})
