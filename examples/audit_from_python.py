# %% [markdown]
# # What does this model give away?
# A notebook in plain Python: every `# %%` is a cell (VS Code, Jupytext). Needs leakscope, pandas and scikit-learn.

# %%
import os

import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope

patients = pd.read_csv(os.environ.get("LEAKSCOPE_EXAMPLE_DATA", "examples/patients.csv")).set_index("patient")

# %% An audit of a table: which patients and which attributes leak, at the noise that protects age to 50 years
result = leakscope.audit(patients, target="dose", group="race", l2=0.01, target_sd={"age": 50}, unit={"age": "years"})
print(result.summary())
print("most exposed:", result.records["eta"].nlargest(3).to_dict())
print(result.attributes[["eta_max", "min_sd"]].head())
print(result.groups[["n", "eta_mean"]])
result.report("report.html")

# %% An audit of a model that scikit-learn fitted: its penalty is translated, and its distance from the minimiser told
numbers = patients[["age", "height", "weight"]]
model = make_pipeline(StandardScaler(), Ridge(alpha=30.0)).fit(numbers, patients["dose"])
audited = leakscope.audit(model, numbers, patients["dose"], sigma=result.sigma)
print("distance from the minimiser:", audited.distance["relative"])

# %% A private model in its place
private = leakscope.PrivateLinear(target_eta=0.5, l2=0.01, random_state=1).fit(numbers, patients["dose"])
print("R² with noise:", round(private.score(numbers, patients["dose"]), 3), "largest η:", round(private.eta_max_, 3))

# %% What DP-SGD would cost, step by step
accountant = leakscope.Accountant()
for _ in range(500):
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
print("ε of 500 steps:", round(accountant.get_epsilon(delta=1e-5), 3))
