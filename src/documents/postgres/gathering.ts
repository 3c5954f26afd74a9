/**
 * Questions that come while others are on their way are asked together, in one statement: a
 * statement's way to the database and back costs far more than its answer.
 */

/** Questions of one statement. */
const QUESTIONS_MAX = 512
/** Statements on their way at once. */
const RUNNING_MAX = 3

interface Asked<Question, Answer> {
  readonly question: Question
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export class Gathering<Question, Answer> {
  readonly #answer: (questions: readonly Question[]) => Promise<readonly Answer[]>
  #asked: Asked<Question, Answer>[] = []
  #scheduled = false
  #running = 0

  /** `answer` gives one answer for each question, in their order. */
  constructor(answer: (questions: readonly Question[]) => Promise<readonly Answer[]>) {
    this.#answer = answer
  }

  ask(question: Question): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#asked.push({ question, resolve, reject })
    this.#schedule()
    return promise
  }

  #schedule(): void {
    if (this.#scheduled || this.#asked.length === 0 || this.#running >= RUNNING_MAX) return
    this.#scheduled = true
    // One turn of the event loop gathers the invocations whose messages came together.
    setImmediate(() => {
      this.#scheduled = false
      void this.#run()
      this.#schedule()
    })
  }

  async #run(): Promise<void> {
    const asked = this.#asked.splice(0, QUESTIONS_MAX)
    this.#running += 1
    try {
      const answers = await this.#answer(asked.map(({ question }) => question))
      for (const [i, { resolve }] of asked.entries()) resolve(answers[i]!)
    } catch (error) {
      for (const { reject } of asked) reject(error)
    } finally {
      this.#running -= 1
      this.#schedule()
    }
  }
}
