/**
 * Promotions during calls at a fixed rate, on the compiled server: no call fails, and each is
 * served by a Release that its target served between the request and its response. `npm run bench`
 * measures the effect of more frequent promotions on the calls.
 *
 * @module-tag slow
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { promoteUnderLoad } from '../../bench/promotions/measure.ts'
import { MARKS, versions } from '../../bench/promotions/versions.ts'
import { type Application, application, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'

/** The short run has a rate that a machine with other tests sustains too. */
const LOAD = {
  perSecond: process.env.SVC_TEST_LONG === '1' ? 500 : 50,
  quietSeconds: 1,
  promotions: 20,
  everyMillis: 150,
}
const RELEASES = 4

let app: Application
const releases: string[] = []

beforeAll(async () => {
  app = await application((workspace) => {
    for (const name of ['channels', 'messages']) {
      writeFileSync(join(workspace, `functions/${name}.ts`), '')
    }
    const schema = `export default defineSchema({ ${MARKS} })`
    writeFileSync(
      join(workspace, 'schema.ts'),
      `import { defineSchema, table, v } from 'svc'\n${schema}\n`,
    )
    write(workspace, 0)
  })
  releases.push(app.releaseId)
  for (let number = 1; number < RELEASES; number++) {
    write(app.installation.workspace, number)
    const released = await app.svc(
      argv`release --remote --root ${app.installation.productRoot} ${UNTYPED}`,
    )
    releases.push(released.releaseId)
  }
})

afterAll(async () => {
  await app?.installation.dispose()
})

function write(workspace: string, number: number): void {
  writeFileSync(join(workspace, 'functions/versions.ts'), versions(number))
}

test('no call fails, and none is served by a Release that is not served', async () => {
  const read = (path: string) =>
    JSON.parse(readFileSync(join(app.installation.directory, path), 'utf8'))
  const { projectId, environmentId } = read('product/service.json')
  const authorization = `Bearer ${read('config/credentials-v1.json').accessToken}`
  const port = (origin: string | null) => Number(new URL(origin!).port)
  const report = await promoteUnderLoad({
    ...LOAD,
    application: {
      port: port(app.server.application),
      headers: { 'content-type': 'application/json', 'x-service-key': app.key },
    },
    management: { port: port(app.server.management), headers: { authorization } },
    base: `/v1/projects/${projectId}/environments/${environmentId}`,
    releases,
  })
  console.info(JSON.stringify({ ...LOAD, ...report }))
  for (const { failures, firstFailure } of [report.quiet, report.promoted]) {
    expect([failures, firstFailure]).toEqual([0, null])
  }
  // Each Release served calls.
  expect(Math.min(...report.answers)).toBeGreaterThan(0)
})
