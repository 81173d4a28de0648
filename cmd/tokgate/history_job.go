package main

import "github.com/tokgate/tokgate/metric"

// ciJob returns the CI job of this process; nil if there is none. It reads the variables that
// GitHub Actions and GitLab CI set (docs.github.com, Variables reference; docs.gitlab.com,
// Predefined CI/CD variables).
func ciJob(getenv func(string) (string, bool)) *metric.Job {
	get := func(name string) string {
		v, _ := getenv(name)
		return v
	}
	switch {
	case get("GITHUB_ACTIONS") == "true":
		j := &metric.Job{Commit: get("GITHUB_SHA"), Ref: get("GITHUB_REF"), Runner: get("RUNNER_NAME")}
		if server, repository, run := get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY"), get("GITHUB_RUN_ID"); server != "" && repository != "" && run != "" {
			j.URL = server + "/" + repository + "/actions/runs/" + run
		}
		return j
	case get("GITLAB_CI") == "true":
		return &metric.Job{Commit: get("CI_COMMIT_SHA"), Ref: get("CI_COMMIT_REF_NAME"), Runner: get("CI_RUNNER_DESCRIPTION"), URL: get("CI_JOB_URL")}
	}
	return nil
}
