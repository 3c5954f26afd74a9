import { expect, test } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import { Heartbeat } from './heartbeat.ts'

interface Watched {
  readonly heartbeat: Heartbeat
  /** The questions that the process has not answered. */
  readonly questions: PromiseWithResolvers<void>[]
  isReady: boolean
  hangs: number
}

function watch(): Watched {
  const questions: PromiseWithResolvers<void>[] = []
  const watched: Watched = {
    questions,
    isReady: true,
    hangs: 0,
    heartbeat: new Heartbeat({
      ask: () => {
        const question = Promise.withResolvers<void>()
        questions.push(question)
        return question.promise
      },
      isReady: () => watched.isReady,
      onHung: () => {
        watched.hangs += 1
      },
    }),
  }
  return watched
}

async function answer({ questions }: Watched): Promise<void> {
  questions.shift()!.resolve()
  await new Promise((resolve) => setImmediate(resolve))
}

function beat({ heartbeat }: Watched, times: number): void {
  for (let i = 0; i < times; i++) heartbeat.beat()
}

test('a process that answers late, before 15 further beats, has not hung', async () => {
  const watched = watch()
  for (let round = 0; round < 3; round++) {
    beat(watched, 15)
    expect(watched.questions).toHaveLength(1)
    await answer(watched)
  }
  expect(watched.hangs).toBe(0)
})

test('a process that misses 15 beats has hung, which is reported once', () => {
  const watched = watch()
  beat(watched, 15)
  expect(watched.hangs).toBe(0)
  beat(watched, 10)
  expect(watched.hangs).toBe(1)
})

test('a process that starts has 120 beats', () => {
  const watched = watch()
  watched.isReady = false
  beat(watched, 120)
  expect(watched.hangs).toBe(0)
  beat(watched, 1)
  expect(watched.hangs).toBe(1)
})

test('a process is asked at once when much was sent, and hangs with a million keys', async () => {
  const watched = watch()
  const { heartbeat, questions } = watched
  for (let round = 0; round < 30; round++) {
    heartbeat.sent(100_000)
    heartbeat.sent(1)
    expect(questions).toHaveLength(1)
    await answer(watched)
  }
  expect(watched.hangs).toBe(0)
  for (let i = 0; i < 10; i++) heartbeat.sent(100_000)
  expect(watched.hangs).toBe(0)
  heartbeat.sent(1)
  expect(watched.hangs).toBe(1)
})

test('a process that has ended is not reported as hung', async () => {
  const watched = watch()
  beat(watched, 1)
  watched.questions[0]!.reject(new Fault('UNAVAILABLE'))
  await new Promise((resolve) => setImmediate(resolve))
  expect(watched.hangs).toBe(0)
})
