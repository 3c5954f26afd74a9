import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bundleWorkspace } from './bundles.ts'

/** Returns the message of a failed bundle of one module. */
async function rejectionOf(text: string): Promise<string | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bundles-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  mkdirSync(join(directory, 'functions'))
  writeFileSync(join(directory, 'schema.ts'), 'export default {}')
  writeFileSync(join(directory, 'functions/a.ts'), text)
  const modules = [{ name: 'a', file: 'functions/a.ts' }]
  const bundling = bundleWorkspace({
    directory,
    workspace: 'default',
    modules,
    client: null,
    clients: [],
    hasCrons: false,
    hasMigrations: false,
    hasHttp: false,
  })
  const error = await bundling.catch((thrown: unknown) => thrown)
  return (error as { detail?: string }).detail
}

const AWAIT =
  '  await is only available in async functions.\n' +
  '  Write async before the function, or move it into a handler.'

test.each([
  ['at the top', 'const z = await Promise.resolve(3)\nexport const y = z\n', '1:17'],
  ['alone', 'await foo()\n', '1:7'],
  ['in a function', 'export const f = () => {\n  const x = await g.h(3)\n  return x\n}\n', '2:19'],
  ['in a loop', 'for await (const x of []) console.log(x)\n', '1:5'],
])('a misplaced await %s is reported without the errors that follow it', async (_, text, at) => {
  expect(await rejectionOf(text)).toBe(`functions/a.ts:${at}\n${AWAIT}`)
})
