/**
 * Pages, a stream, pruning and revocation of the log while Mutations write it and the server is
 * killed. SVC_TEST_LONG=1 kills it more often.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application } from '../application.ts'
import { DECOMPRESSED, filesBelow } from '../canaries.ts'
import { checkLog } from './checker.ts'
import { LogCampaign } from './driver.ts'

const IS_LONG = process.env.SVC_TEST_LONG === '1'
const KILLS = IS_LONG ? 30 : 2
const MUTATIONS_BETWEEN_KILLS = IS_LONG ? 2_000 : 150
const MINUTES = 60_000

const FUNCTIONS = `
  import { mutation, v } from 'svc'

  export const say = mutation({
    clients: ['confidential'],
    arguments: { number: v.int64() },
    returns: v.null(),
    handler: async (ctx, { number }) => {
      ctx.log.info('logged ' + number)
      return null
    },
  })
`

let app: Application
beforeAll(async () => {
  app = await application(
    (workspace) => writeFileSync(join(workspace, 'functions', 'voice.ts'), FUNCTIONS),
    { SERVICE_LOG_SEGMENT_SECONDS: '1' },
  )
})
afterAll(() => app?.installation.dispose())

test(
  'no record is lost or doubled, and acknowledged Mutations have a record or are counted',
  async () => {
    const campaign = new LogCampaign(app)
    const history = await campaign.run({
      kills: KILLS,
      mutations: MUTATIONS_BETWEEN_KILLS,
      archived: () => {
        const files = [...filesBelow(join(app.installation.productRoot, 'logs'))]
        const contents = files.filter(([name]) => name.endsWith(DECOMPRESSED))
        return contents.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, bytes]) => bytes)
      },
    })
    const found = checkLog(history)
    console.info(JSON.stringify(found.counts))
    expect(found.violations).toEqual([])
    expect(found.counts.acknowledged).toBeGreaterThanOrEqual(KILLS * MUTATIONS_BETWEEN_KILLS)
    expect(found.counts.archived).toBeGreaterThan(0)
    expect(found.counts.pruned).toBeGreaterThan(0)
    expect(found.counts.followed).toBeGreaterThan(0)
  },
  20 * MINUTES,
)
