/**
 * Goal: no version loses anything on the way forward and back. Method: the release before this one,
 * this one and one after it serve the same root one after the other, are killed in the middle of
 * migrations and while they serve, and each time every acknowledged change is read again.
 *
 * @module-tag slow
 */
import { describe, onTestFinished, test } from 'vitest'
import { EXPANSION, nextPrograms, ONE_WAY } from '../../testing/servers/next-release.ts'
import { previousCommit, previousPrograms } from '../../testing/servers/previous-release.ts'
import { SERVER } from '../harness.ts'
import { backAndForth, oneWayAndBack, oneWayWithBackup } from './routes.ts'
import { backedUpStory, story } from './story.ts'

const commit = previousCommit()
const isThere = commit === '' ? ' (the history lacks the previous release)' : ''

test('this version starts again after a later one that only adds, and loses nothing', async () => {
  const next = nextPrograms(EXPANSION)
  onTestFinished(() => next.dispose())
  const found = await story({ server: SERVER, store: 'sqlite', documents: 5 })
  await backAndForth(found, SERVER, next.server)
})

test('this version restores what a later one backed up before a one-way upgrade', async () => {
  const next = nextPrograms(ONE_WAY)
  onTestFinished(() => next.dispose())
  const found = await backedUpStory({ server: SERVER, store: 'sqlite', documents: 5 })
  await oneWayWithBackup(found.story, [SERVER, next.server], found.places)
})

describe.skipIf(commit === '')(`the previous release${isThere}`, () => {
  test('its root is upgraded through kills, copied back and upgraded again', async () => {
    const { server } = previousPrograms(commit)
    const found = await story({ server, store: 'sqlite', documents: 5 })
    await oneWayAndBack(found, server, SERVER)
  })
})
