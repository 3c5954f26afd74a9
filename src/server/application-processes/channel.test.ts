import { expect, test } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import { Channel, type Side } from './channel.ts'

interface Numbers extends Side {
  readonly message: number
  readonly request: string
}

type End = Channel<Numbers, Numbers>

interface Connected {
  readonly asking: End
  readonly answering: End
  /** The messages and requests of the answering end, in their order. */
  readonly received: (number | string)[]
  /** The number of envelopes that were sent together. */
  readonly sent: number[]
}

function connect(answer: (request: string, signal: AbortSignal) => Promise<unknown>): Connected {
  const received: (number | string)[] = []
  const sent: number[] = []
  const lost = () => new Fault('RESULT_UNCERTAIN')
  const asking: End = new Channel<Numbers, Numbers>({
    send: (envelopes) => {
      sent.push(envelopes.length)
      answering.receive(structuredClone(envelopes))
    },
    onMessage: () => undefined,
    onRequest: async () => null,
    lost,
  })
  const answering: End = new Channel<Numbers, Numbers>({
    send: (envelopes) => asking.receive(structuredClone(envelopes)),
    onMessage: (message) => received.push(message),
    onRequest: (request, signal) => {
      received.push(request)
      return answer(request, signal)
    },
    onReceived: () => received.push('all'),
    lost,
  })
  return { asking, answering, received, sent }
}

const failureOf = (asked: Promise<unknown>): Promise<Fault> =>
  asked.then(
    () => Promise.reject(new Error('nothing failed')),
    (error) => error,
  )
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('messages and requests of one turn arrive together and in their order', async () => {
  const { asking, received, sent } = connect(async (request) => request.length)
  asking.post(1)
  const answer = asking.ask<number>('ask')
  asking.post(2)
  await expect(answer).resolves.toBe(3)
  expect(received).toEqual([1, 'ask', 2, 'all'])
  expect(sent).toEqual([3])
})

test('each request gets its own answer, in whatever order they are given', async () => {
  const answers = new Map<string, PromiseWithResolvers<string>>()
  const { asking } = connect((request) => {
    answers.set(request, Promise.withResolvers())
    return answers.get(request)!.promise
  })
  const [first, second] = [asking.ask('first'), asking.ask('second')]
  await turn()
  answers.get('second')!.resolve('2')
  answers.get('first')!.resolve('1')
  await expect(Promise.all([first, second])).resolves.toEqual(['1', '2'])
})

test('a failure arrives with all its parts, and any other error as INTERNAL', async () => {
  const violations = [{ path: 'a', rule: 'b' }]
  const { asking } = connect(async (request) => {
    if (request === 'fault') throw new Fault('BUSY', { violations, retryAfterSeconds: 7 })
    throw new TypeError('unforeseen')
  })
  const fault = await failureOf(asking.ask('fault'))
  expect([fault instanceof Fault, fault.code]).toEqual([true, 'BUSY'])
  expect(fault).toMatchObject({ violations, retryAfterSeconds: 7, retryable: true })
  const internal = await failureOf(asking.ask('other'))
  expect([internal.code, internal.detail]).toEqual(['INTERNAL', 'TypeError: unforeseen'])
})

test('an aborted request aborts the signal of the side that answers', async () => {
  const { asking } = connect(
    (_, signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted'))),
  )
  const controller = new AbortController()
  const answer = asking.ask('wait', controller.signal)
  await turn()
  controller.abort()
  await expect(answer).resolves.toBe('aborted')
})

test('a request that is aborted before it is sent is cancelled too', async () => {
  const { asking } = connect(
    (_, signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted'))),
  )
  await expect(asking.ask('wait', AbortSignal.abort())).resolves.toBe('aborted')
})

test('the end of the other process fails and aborts every request', async () => {
  let signal: AbortSignal | null = null
  const { asking, answering, received } = connect((_, given) => {
    signal = given
    return new Promise(() => undefined)
  })
  const pending = asking.ask('pending')
  await turn()
  asking.close()
  answering.close()
  await expect(pending).rejects.toMatchObject({ code: 'RESULT_UNCERTAIN' })
  await expect(asking.ask('later')).rejects.toMatchObject({ code: 'RESULT_UNCERTAIN' })
  asking.post(1)
  await turn()
  expect(received).toEqual(['pending', 'all'])
  expect(signal!.aborted).toBe(true)
})
