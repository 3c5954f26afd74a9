/** The guide to endpoints: its samples are one Workspace, which programs call. */
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runBuild } from '../src/dev/building/commands.ts'
import { startTypeChecker } from '../src/dev/type-check/type-check.ts'
import { describeHere } from '../testing/describe-here.ts'
import { LocalDevelopment } from '../testing/development/local-development.ts'
import { workspaceSamples } from '../testing/markdown/workspace-samples.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/docs/endpoints.md'), 'utf8')
/** The Workspace of these tests has a file of another schema, which this one replaces. */
const NOTES = `import { query, v } from 'svc'
export const none = query({ clients: ['public'], returns: v.null(), handler: () => null })
`

let dev: LocalDevelopment
beforeAll(async () => {
  dev = new LocalDevelopment()
  for (const [path, text] of Object.entries(workspaceSamples(GUIDE))) dev.write(path, text)
  dev.write('functions/notes.ts', NOTES)
  await dev.start()
})
afterAll(() => dev.dispose())

async function urlOf(name: string): Promise<string> {
  const { hooks } = await dev.next('hooks', () => true, 0)
  return hooks.find((each) => each.name === name)!.url
}

test('the samples have correct types', { tags: ['slow'] }, async () => {
  const workspaceDirectory = realpathSync(dev.workspace)
  const { build } = await runBuild({ workspaceDirectory, describe: describeHere, startTypeChecker })
  expect(build.description.http?.map(({ name }) => name)).toEqual([
    'placeOrder',
    'readOrder',
    'report',
  ])
})

test('the endpoints of the samples answer as the guide says', async () => {
  const placed = await fetch(await urlOf('placeOrder'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ item: 'tea' }),
  })
  expect([placed.status, placed.headers.get('location')]).toEqual([201, 'orders/1'])
  expect(await placed.json()).toEqual({ number: 1 })
  const order = (await urlOf('readOrder')).replace(':number', '1')
  const origin = 'https://shop.example.com'
  const read = await fetch(order, { headers: { origin } })
  expect(await read.json()).toEqual({ number: 1, item: 'tea' })
  expect(read.headers.get('access-control-allow-origin')).toBe(origin)
  const report = await fetch(await urlOf('report'))
  expect(report.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(report.headers.get('cache-control')).toBe('public, max-age=60')
  expect(await report.text()).toBe('number,item\n1,tea\n')
})
