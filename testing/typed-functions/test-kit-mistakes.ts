/** A test of Functions with the mistakes that the compiler must find, and no others. */
export const TEST_KIT_MISTAKES = `
import { isCallError, testEnvironment } from 'svc/test'
import { api } from '../_generated/api'

export async function works() {
  await using backend = await testEnvironment({
    seed: 1,
    now: new Date(0),
    fetch: async (request) => new Response(await request.text()),
  })
  const channel = await backend.mutation(api.channels.create, { name: 'general', author: 'Ada' })
  const user = backend.asUser('ada', { roles: ['admin'] })
  const [newest] = await user.query(api.messages.list, { channel, limit: 1n })
  const likes: bigint | undefined = newest?.likes
  await backend.query(api.channels.list)
  await backend.advance({ minutes: 5 })
  const [first] = await backend.documents('channels')
  const topic: string | undefined = first?.topic
  const untyped: unknown = await backend.query('messages.list', { channel })
  await backend.advance()
  await backend.advance({ hours: 1 }, { crons: false })
  await backend.advance({ hours: 1 }, { crons: ['digest'] })
  try {
    await backend.asGuest().query(api.channels.list)
  } catch (error) {
    if (isCallError(error)) return [error.code, likes, topic, untyped]
  }
  return []
}
export async function mistakes() {
  const backend = await testEnvironment()
  // @ts-expect-error an argument is missing
  await backend.mutation(api.channels.create, { name: 'general' })
  // @ts-expect-error an argument of another type
  await backend.query(api.messages.list, { channel: 5n })
  // @ts-expect-error a Mutation is no Query
  await backend.query(api.channels.create, { name: 'general', author: 'Ada' })
  // @ts-expect-error no such unit
  await backend.advance({ weeks: 1 })
  // @ts-expect-error a duration of nothing
  await backend.advance({})
  // @ts-expect-error all Crons is the default
  await backend.advance({ hours: 1 }, { crons: true })
  // @ts-expect-error no such table
  await backend.documents('nowhere')
  // @ts-expect-error a number is no time
  await testEnvironment({ now: 5 })
}
`
