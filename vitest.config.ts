import './build/bun-channel.ts'
import { defaultExclude, defineConfig } from 'vitest/config'

/** `npm run test:long` adds what takes minutes. */
const long = process.env.SVC_TEST_LONG === '1'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'build/**/*.test.ts', 'e2e/**/*.test.ts'],
    exclude: [...defaultExclude, ...(long ? [] : ['**/*.long.test.ts'])],
    globalSetup: ['build/testing/global-setup.ts'],
    pool: 'forks',
    // One more than the cores of the smallest machine, since tests wait for processes.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 10_000 } },
  },
})
