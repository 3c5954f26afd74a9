/**
 * The TypeScript samples of documents have correct types, in Workspaces that contain them.
 *
 * @module-tag slow
 */
import { realpathSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { runBuild } from '../../src/dev/building/commands.ts'
import { startTypeChecker } from '../../src/dev/type-check/type-check.ts'
import { describeHere } from '../../testing/describe-here.ts'
import { kitWorkspace } from '../../testing/test-kit/workspaces.ts'
import { ROOT } from '../bundle.ts'
import { readSamples } from './blocks.ts'
import { SAMPLE_WORKSPACES, type TextAt } from './workspaces.ts'

const TEXTS = new Map(readSamples(ROOT).map(({ place, text }) => [place, text]))
const textAt: TextAt = (place) => TEXTS.get(place) ?? expect.unreachable(`no sample is ${place}`)
const [FIRST] = SAMPLE_WORKSPACES

function check(files: Readonly<Record<string, string>>) {
  const workspace = kitWorkspace('empty', files)
  onTestFinished(() => workspace.remove())
  const workspaceDirectory = realpathSync(workspace.directory)
  return runBuild({ workspaceDirectory, describe: describeHere, startTypeChecker })
}

test.each(SAMPLE_WORKSPACES)('the samples of $name have correct types', async ({ files }) => {
  const { build } = await check(files(textAt))
  expect(build.description.tables.length).toBeGreaterThan(0)
})

test('a wrong type in a sample is found', async () => {
  const wrong = FIRST!.files((place) =>
    textAt(place).replace('amount: v.int64()', 'amount: v.string()'),
  )
  await expect(check(wrong)).rejects.toMatchObject({
    code: 'WORKSPACE_INVALID',
    detail: expect.stringContaining('functions/payments.ts:'),
  })
})
