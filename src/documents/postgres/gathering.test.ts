import { expect, test } from 'vitest'
import { Gathering } from './gathering.ts'

test('questions of one turn are asked together, and each gets its own answer', async () => {
  const asked: number[][] = []
  const gathering = new Gathering<number, string>(async (questions) => {
    asked.push([...questions])
    return questions.map((question) => `answer ${question}`)
  })
  const answers = await Promise.all([1, 2, 3].map((question) => gathering.ask(question)))
  expect(answers).toEqual(['answer 1', 'answer 2', 'answer 3'])
  expect(await gathering.ask(4)).toBe('answer 4')
  expect(asked).toEqual([[1, 2, 3], [4]])
})

test('while three statements are on their way, further questions gather', async () => {
  const running: { count: number; finish: () => void }[] = []
  const gathering = new Gathering<number, number>(async (questions) => {
    await new Promise<void>((finish) => running.push({ count: questions.length, finish }))
    return questions
  })
  const answers: Promise<number>[] = []
  for (let question = 0; question < 10; question++) {
    answers.push(gathering.ask(question))
    await new Promise(setImmediate)
    await new Promise(setImmediate)
  }
  expect(running.map(({ count }) => count)).toEqual([1, 1, 1])
  running[0]!.finish()
  await expect.poll(() => running.length).toBe(4)
  expect(running[3]!.count).toBe(7)
  for (const { finish } of running) finish()
  expect(await Promise.all(answers)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('a statement that fails refuses its questions, and the next ones are asked', async () => {
  let fails = true
  const gathering = new Gathering<number, number>(async (questions) => {
    if (fails) throw new Error('lost')
    return questions
  })
  const outcomes = await Promise.allSettled([gathering.ask(1), gathering.ask(2)])
  expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
  fails = false
  expect(await gathering.ask(3)).toBe(3)
})
