/** One message of each form that a runner may send; tests mutate them. */

const USAGE = [true, false, true, 12, [['info', 'x', null]]]
const RANGE = {
  table: 't',
  index: 'i',
  equal: [{ $i: '1' }],
  field: 'f',
  lower: { value: 1, inclusive: true },
  upper: { value: 2, inclusive: false },
  order: 'desc',
  limit: 5,
  cursor: 'c',
  next: 'sealed',
}
const REQUEST = {
  url: 'https://a.test/',
  method: 'POST',
  headers: [['a', 'b']],
  body: 'AA==',
  redirect: 'follow',
}
const CONTAINMENT = { landlock: 7, seccomp: true, unprivileged: true, seatbelt: false }

export const VALID_MESSAGES: readonly (readonly [type: string, ...unknown[]])[] = [
  ['hello', CONTAINMENT, [['landlock read', true]]],
  ['hello', CONTAINMENT, null],
  ['loaded'],
  ['loadFailed', ['Error', 'no', '']],
  ['description', 1, { functions: [] }],
  ['operation', 1, 2, ['get', 'x_1']],
  ['operation', 1, 2, ['range', RANGE]],
  ['operation', 1, 2, ['insert', 't', { a: 1 }]],
  ['operation', 1, 2, ['patch', 'x_1', { a: 1 }, ['b']]],
  ['operation', 1, 2, ['replace', 'x_1', {}]],
  ['operation', 1, 2, ['delete', 'x_1']],
  ['operation', 1, 2, ['run', 'mutation', 'f.x', { a: 1 }]],
  ['operation', 1, 2, ['usage']],
  ['operation', 1, 2, ['fetch', 3, REQUEST]],
  ['operation', 1, 2, ['abort', 3]],
  ['operation', 1, 2, ['sleep', 5]],
  ['operation', 1, 2, ['config', 'variable', 'API_KEY']],
  ['pipelined', 1, [['get', 'x_1']]],
  [
    'pipelined',
    1,
    [
      ['insert', 't', { a: 1 }],
      ['patch', 'x_1', { a: 1 }, ['b']],
      ['replace', 'x_1', {}],
      ['delete', 'x_1'],
    ],
  ],
  ['returned', 1, { any: ['thing'] }, USAGE],
  ['returned', 1, { any: [{ $r: 0 }, { $r: 1 }] }, USAGE],
  ['failed', 1, 'CODE', USAGE],
  ['threw', 1, ['TypeError', 'm', 's'], USAGE],
  ['limit', 1, 'cpu', USAGE],
  ['misspeculated', 1, 'failed', USAGE],
  ['misspeculated', 1, 'read', USAGE],
  ['misspeculated', 1, 'kept', USAGE],
  ['returned', 1, null, [...USAGE, [['delete', 'x_1']]]],
]
