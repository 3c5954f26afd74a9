/** Fields of forms that filter a list. */

/** A choice of one of several values, or of any. */
export function Choice({
  name,
  label,
  value,
  choices,
}: {
  name: string
  label: string
  value: string
  choices: readonly string[]
}) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <select name={name} value={value}>
        {['', ...choices].map((each) => (
          <option key={each} value={each} selected={each === value}>
            {each === '' ? 'any' : each}
          </option>
        ))}
      </select>
    </label>
  )
}

export function TextFilter({ name, label, value }: { name: string; label: string; value: string }) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input name={name} defaultValue={value} autocomplete="off" spellcheck={false} />
    </label>
  )
}
